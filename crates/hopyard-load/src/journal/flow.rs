//! One flow of the journal.

use hdrhistogram::Histogram;

use super::jitter::Jitter;
use super::sequence::{Place, Sequence};
use crate::numbered::Header;
use crate::summary::{LONGEST_NS, Timings};
use hopyard_model::{FlowArrivals, units::float};

/// Up to so many flows have their delays kept to three digits, more of them to two: 100 KiB each, or 14.
const FINE_FLOWS: u32 = 64;

/// What is known of a flow.
pub(super) struct Flow {
    sequence: Sequence,
    jitter: Jitter,
    first_arrival_ns: Option<u64>,
    last_arrival_ns: Option<u64>,
    /// The numbers that the window is about: from the first that came in it, and in order, to before this one.
    numbers: Option<(u64, u64)>,
    /// Those of them that came.
    came: u64,
    counted: FlowArrivals,
    smoothed_sum_ns: f64,
    delays: Histogram<u32>,
}

/// What one more datagram says beyond its flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// It is the first copy.
    pub(super) first: bool,
    pub(super) ipdv_ns: Option<i64>,
    pub(super) gap_ns: Option<u64>,
    /// Of RFC 3550, this datagram included; none of a copy.
    pub(super) smoothed_ns: Option<f64>,
}

impl Flow {
    /// One of so many.
    pub(super) fn new(flows: u32) -> Result<Self, String> {
        let digits = if flows <= FINE_FLOWS { 3 } else { 2 };
        Ok(Self {
            sequence: Sequence::default(),
            jitter: Jitter::default(),
            first_arrival_ns: None,
            last_arrival_ns: None,
            numbers: None,
            came: 0,
            counted: FlowArrivals::default(),
            smoothed_sum_ns: 0.0,
            delays: Histogram::new_with_bounds(1, LONGEST_NS, digits)
                .map_err(|e| format!("cannot make a histogram: {e}"))?,
        })
    }

    /// Enters a datagram, which `counts` if it came within the window.
    #[inline]
    pub(super) fn enter(
        &mut self,
        header: &Header,
        bytes: usize,
        arrived_ns: u64,
        counts: bool,
    ) -> Seen {
        let place = self.sequence.enter(header.number);
        if place == Place::Duplicate {
            self.counted.duplicates += u64::from(counts);
            return Seen {
                first: false,
                ipdv_ns: None,
                gap_ns: None,
                smoothed_ns: None,
            };
        }
        self.first_arrival_ns.get_or_insert(arrived_ns);
        let last_arrival_ns = self.last_arrival_ns.replace(arrived_ns);
        let gap_ns = last_arrival_ns.map(|last| arrived_ns.saturating_sub(last));
        // Below 0 where two clocks are known less closely than the delay.
        let delay_ns = arrived_ns.wrapping_sub(header.sent_ns).cast_signed();
        let step = self.jitter.enter(header.number, delay_ns);
        if counts {
            self.number(header.number, place);
            self.counted.packets += 1;
            self.counted.bytes += bytes as u64;
            self.counted.longest_gap_ns = self.counted.longest_gap_ns.max(gap_ns);
            self.delay(u64::try_from(delay_ns).unwrap_or(0));
            self.smoothed_sum_ns += step.smoothed_ns;
            if let Some(ipdv_ns) = step.ipdv_ns {
                let c = &mut self.counted;
                c.ipdv_min_ns = Some(c.ipdv_min_ns.map_or(ipdv_ns, |least| least.min(ipdv_ns)));
                c.ipdv_max_ns = c.ipdv_max_ns.max(Some(ipdv_ns));
            }
        }
        Seen {
            first: true,
            ipdv_ns: step.ipdv_ns,
            gap_ns,
            smoothed_ns: Some(step.smoothed_ns),
        }
    }

    #[inline]
    fn number(&mut self, number: u64, place: Place) {
        self.counted.reordered += u64::from(place == Place::Reordered);
        // Where a late one opens the window, the numbers after it came before, or were lost before.
        let begin = match place {
            Place::Reordered => self.sequence.next(),
            Place::InOrder | Place::Duplicate => number,
        };
        let (first, _) = self.numbers.unwrap_or((begin, begin));
        self.numbers = Some((first, self.sequence.next()));
        self.came += u64::from(number >= first);
    }

    #[inline]
    fn delay(&mut self, delay_ns: u64) {
        let c = &mut self.counted;
        c.delay_min_ns = Some(c.delay_min_ns.map_or(delay_ns, |least| least.min(delay_ns)));
        c.delay_max_ns = c.delay_max_ns.max(Some(delay_ns));
        self.delays.saturating_record(delay_ns);
    }

    /// Adds the flow's PDV (RFC 5481) to a distribution: each delay minus the flow's least.
    pub(super) fn add_pdv(&self, to: &mut Timings) {
        let least = self.counted.delay_min_ns.unwrap_or(0);
        for bucket in self.delays.iter_recorded() {
            let value = bucket.value_iterated_to();
            let delay = self
                .delays
                .median_equivalent(value)
                .min(self.counted.delay_max_ns.unwrap_or(value));
            let count = u64::from(bucket.count_at_value());
            to.record_n(delay.saturating_sub(least), count);
        }
    }

    /// What came of it in a window that opened then.
    pub(super) fn arrivals(&self, open_ns: u64) -> FlowArrivals {
        let packets = float(self.counted.packets);
        FlowArrivals {
            first_before_window_ns: self.first_arrival_ns.and_then(|at| open_ns.checked_sub(at)),
            lost: self
                .numbers
                .map(|(first, next)| (next - first).saturating_sub(self.came)),
            delay_mean_ns: (packets > 0.0).then(|| self.delays.mean()),
            jitter_rfc3550_ns: (self.counted.packets > 1).then(|| self.smoothed_sum_ns / packets),
            ..self.counted.clone()
        }
    }
}
