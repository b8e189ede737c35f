//! The two ends of requests and responses.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use hopyard_net::clock;

use super::Part;
use crate::flow::Context;
use crate::flow::burst::{InFlight, PATIENCE_NS};
use crate::flow::exchange::{Account, Responder, Times, begin, work_for};

/// What the requests of a client's flow are like.
#[derive(Debug, Clone, Copy)]
struct Asking {
    outstanding: usize,
    pause_ns: u64,
    response_bytes: usize,
}

impl Asking {
    fn of(responder: &Responder) -> Self {
        Self {
            outstanding: responder.outstanding as usize,
            pause_ns: responder.pause_ns,
            response_bytes: responder.response.len(),
        }
    }
}

/// What both clients do: they begin requests, and complete them.
struct Requests<'a> {
    context: Context<'a>,
    account: Account<'a>,
    /// Of all flows of a thread.
    times: Rc<RefCell<Times>>,
    /// When a response was just taken, which saves a look at the clock.
    now_ns: Option<u64>,
}

impl<'a> Requests<'a> {
    fn new(context: Context<'a>, times: Rc<RefCell<Times>>) -> Self {
        Self {
            context,
            account: Account::new(context.tally),
            times,
            now_ns: None,
        }
    }

    #[inline]
    fn completed(&mut self, began_ns: u64, ended_ns: u64, bytes: usize) {
        self.times.borrow_mut().record(began_ns, ended_ns);
        self.account.completed(bytes);
        self.now_ns = Some(ended_ns);
    }

    /// When the next request begins.
    #[inline]
    fn begin(&mut self, pause_ns: u64) -> u64 {
        begin(pause_ns, &mut self.now_ns)
    }
}

/// The client over a connection, which keeps the order: a response is that of the oldest request.
pub(crate) struct Client<'a> {
    requests: Requests<'a>,
    asking: Asking,
    /// Of the requests in flight, the oldest first.
    began: VecDeque<u64>,
    /// Bytes of the oldest one's response.
    have: usize,
}

impl<'a> Client<'a> {
    pub(crate) fn new(
        context: Context<'a>,
        responder: &Responder,
        times: Rc<RefCell<Times>>,
    ) -> Self {
        let asking = Asking::of(responder);
        Self {
            requests: Requests::new(context, times),
            asking,
            began: VecDeque::with_capacity(asking.outstanding),
            have: 0,
        }
    }
}

impl Drop for Client<'_> {
    /// The flow is over.
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.began);
        self.requests.times.borrow_mut().cut_off(left);
    }
}

impl Part for Client<'_> {
    #[inline]
    fn begin(&mut self, _: &mut [u8]) -> bool {
        if self.began.len() >= self.asking.outstanding || self.requests.context.stopped() {
            return false;
        }
        self.began
            .push_back(self.requests.begin(self.asking.pause_ns));
        true
    }

    fn sent(&mut self, _: usize, _: bool) {}

    #[inline]
    fn came(&mut self, bytes: &[u8]) {
        self.have += bytes.len();
        let whole = self.asking.response_bytes;
        while self.have >= whole
            && let Some(began_ns) = self.began.pop_front()
        {
            let ended_ns = clock::monotonic_ns();
            self.requests.completed(began_ns, ended_ns, whole);
            self.have -= whole;
        }
    }

    fn expects(&self) -> bool {
        !self.began.is_empty()
    }

    fn is_over(&self) -> bool {
        self.began.is_empty() && self.requests.context.stopped()
    }
}

/// The client of datagrams, which carry a number: they may be lost, and pass each other.
pub(crate) struct NumberedClient<'a> {
    requests: Requests<'a>,
    asking: Asking,
    flying: InFlight,
    number_bytes: usize,
    /// When it looks next for what was lost.
    looks_ns: u64,
}

impl<'a> NumberedClient<'a> {
    pub(crate) fn new(
        context: Context<'a>,
        responder: &Responder,
        times: Rc<RefCell<Times>>,
    ) -> Self {
        let number_bytes = responder.number_bytes();
        Self {
            requests: Requests::new(context, times),
            asking: Asking::of(responder),
            flying: InFlight::new(number_bytes),
            number_bytes,
            looks_ns: clock::monotonic_ns() + PATIENCE_NS,
        }
    }
}

impl Part for NumberedClient<'_> {
    #[inline]
    fn begin(&mut self, message: &mut [u8]) -> bool {
        if self.flying.count() as usize >= self.asking.outstanding
            || self.requests.context.stopped()
        {
            return false;
        }
        let number = self.flying.number();
        let began_ns = self.requests.begin(self.asking.pause_ns);
        let bytes = self.number_bytes;
        message[..bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
        self.flying.add(number, began_ns);
        true
    }

    fn sent(&mut self, _: usize, _: bool) {}

    #[inline]
    fn came(&mut self, bytes: &[u8]) {
        if bytes.len() != self.asking.response_bytes {
            return;
        }
        let ended_ns = clock::monotonic_ns();
        let mut number = [0; 8];
        number[..self.number_bytes].copy_from_slice(&bytes[..self.number_bytes]);
        if let Some(began_ns) = self.flying.answered(u64::from_le_bytes(number)) {
            self.requests.completed(began_ns, ended_ns, bytes.len());
        }
    }

    fn expects(&self) -> bool {
        self.flying.count() > 0
    }

    fn wakes_ns(&self) -> Option<u64> {
        Some(self.looks_ns)
    }

    fn wake(&mut self, now_ns: u64) {
        let (tally, times) = (self.requests.context.tally, self.requests.times.borrow());
        self.flying
            .give_up(now_ns, |began_ns| tally.timed_out(times.has(began_ns)));
        self.looks_ns = now_ns + PATIENCE_NS / 4;
    }

    fn is_over(&self) -> bool {
        self.flying.count() == 0 && self.requests.context.stopped()
    }
}

/// The server: answers each request, in their order.
pub(crate) struct Server<'a> {
    context: Context<'a>,
    account: Account<'a>,
    request_bytes: usize,
    /// A datagram is a request; over a connection these are the bytes of one that came so far.
    have: Option<usize>,
    number_bytes: usize,
    service_time_ns: u64,
    /// The numbers of requests that are not answered.
    unanswered: VecDeque<[u8; 8]>,
}

impl<'a> Server<'a> {
    pub(crate) fn new(context: Context<'a>, responder: &Responder) -> Self {
        Self {
            context,
            account: Account::new(context.tally),
            request_bytes: responder.request.len(),
            have: (!responder.datagrams).then_some(0),
            number_bytes: responder.number_bytes(),
            service_time_ns: responder.service_time_ns,
            unanswered: VecDeque::with_capacity(responder.outstanding as usize),
        }
    }
}

impl Part for Server<'_> {
    #[inline]
    fn begin(&mut self, message: &mut [u8]) -> bool {
        let Some(number) = self.unanswered.pop_front() else {
            return false;
        };
        if self.have.is_none() {
            message[..self.number_bytes].copy_from_slice(&number[..self.number_bytes]);
        }
        if self.service_time_ns > 0 {
            work_for(self.service_time_ns);
        }
        true
    }

    #[inline]
    fn sent(&mut self, _: usize, is_whole: bool) {
        if is_whole {
            self.account.completed(self.request_bytes);
        }
    }

    #[inline]
    fn came(&mut self, bytes: &[u8]) {
        let mut number = [0; 8];
        match &mut self.have {
            Some(have) => {
                *have += bytes.len();
                while *have >= self.request_bytes {
                    *have -= self.request_bytes;
                    self.unanswered.push_back(number);
                }
            }
            None if bytes.len() == self.request_bytes => {
                let leading = &bytes[..self.number_bytes];
                number[..self.number_bytes].copy_from_slice(leading);
                self.unanswered.push_back(number);
            }
            None => {}
        }
    }

    fn expects(&self) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        self.context.stopped()
    }
}
