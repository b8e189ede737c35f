//! A device's `clsact` queueing discipline and its classifiers, among them eBPF programs (net/sched/cls_bpf.c): the
//! hooks that kernels before tcx have.

use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcOption};

use crate::attrs::{TCA_KIND, TCMSG, attribute, text, u32_at};
use crate::error::{Error, Result};
use crate::handle::{Handle, refused};

const TCA_OPTIONS: u16 = 2;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_ID: u16 = 11;
/// `TCA_BPF_FLAG_ACT_DIRECT`: what the program returns is what becomes of the packet.
const DIRECT: u32 = 1;

/// `TC_H_CLSACT`: where a `clsact` is among a device's queueing disciplines.
const PARENT: TcHandle = TcHandle {
    major: 0xffff,
    minor: 0xfff1,
};

/// Which packets of a device a classifier sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Those that the device received.
    Ingress,
    /// Those that it is about to send.
    Egress,
}

impl Side {
    /// `TC_H_MIN_INGRESS` and `TC_H_MIN_EGRESS` of `TC_H_CLSACT`.
    fn parent(self) -> TcHandle {
        let minor = match self {
            Self::Ingress => 0xfff2,
            Self::Egress => 0xfff3,
        };
        TcHandle {
            major: 0xffff,
            minor,
        }
    }
}

/// A classifier of a `clsact`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Classifier {
    /// Its kind: `bpf`, `flower`, `matchall`…
    pub kind: String,
    /// The name that an eBPF program was given when it was attached; empty for other kinds.
    pub name: String,
    /// The identity of an eBPF program, as `bpftool prog` lists it.
    pub program: Option<u32>,
}

/// An eBPF program as a classifier of all protocols, whose result decides about the packet.
#[derive(Debug, Clone, Copy)]
pub struct NewClassifier<'a> {
    /// The loaded program, of type `BPF_PROG_TYPE_SCHED_CLS`.
    pub program: BorrowedFd<'a>,
    /// The name that [`Handle::classifiers`] gives.
    pub name: &'a str,
    /// Where it is among the classifiers of its side: the lowest runs first. Not 0.
    pub priority: u16,
    /// What tells it from others of its priority. Not 0.
    pub handle: u16,
}

impl Handle {
    /// Attaches a program to one side of a device that has a `clsact`. It stays until it or the `clsact` is removed.
    ///
    /// # Errors
    /// [`Error::Missing`] for the device, [`Error::Kernel`] where it has no `clsact`, or another classifier of this priority and handle.
    pub fn add_classifier(&self, device: &str, side: Side, new: &NewClassifier<'_>) -> Result<()> {
        let what = format!("attach program `{}` to `{device}`", new.name);
        self.classify(&what, device, side, new, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Puts a program in the place of the one with its priority and handle. No packet sees neither or both.
    ///
    /// # Errors
    /// [`Error::Missing`] for the device, [`Error::Kernel`] where no classifier has this priority and handle.
    pub fn replace_classifier(
        &self,
        device: &str,
        side: Side,
        new: &NewClassifier<'_>,
    ) -> Result<()> {
        let what = format!("replace program `{}` at `{device}`", new.name);
        self.classify(&what, device, side, new, 0)
    }

    fn classify(
        &self,
        what: &str,
        device: &str,
        side: Side,
        new: &NewClassifier<'_>,
        flags: u16,
    ) -> Result<()> {
        let all = u16::try_from(libc::ETH_P_ALL).unwrap_or_default();
        let mut message = self.tc_message(what, device, side.parent())?;
        message.header.handle = TcHandle {
            major: 0,
            minor: new.handle,
        };
        message.header.info = u32::from(new.priority) << 16 | u32::from(all.to_be());
        let option = |kind, value: &[u8]| TcOption::Other(DefaultNla::new(kind, value.to_vec()));
        let name: Vec<u8> = new.name.bytes().chain([0]).collect();
        message.attributes = vec![
            TcAttribute::Kind("bpf".into()),
            TcAttribute::Options(vec![
                option(TCA_BPF_FD, &new.program.as_raw_fd().to_ne_bytes()),
                option(TCA_BPF_NAME, &name),
                option(TCA_BPF_FLAGS, &DIRECT.to_ne_bytes()),
            ]),
        ];
        let message = RouteNetlinkMessage::NewTrafficFilter(message);
        self.ask(what, device, message, flags).map(drop)
    }

    /// The classifiers at one side of a device, in their order; none where it has no `clsact`.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such device.
    pub fn classifiers(&self, device: &str, side: Side) -> Result<Vec<Classifier>> {
        let what = format!("ask what classifies packets of `{device}`");
        let message = self.tc_message(&what, device, side.parent())?;
        let replies = self.dump(&what, &RouteNetlinkMessage::GetTrafficFilter(message))?;
        Ok(replies
            .iter()
            .filter_map(|reply| classifier(reply))
            .collect())
    }

    /// Gives a device a `clsact`, unless it has one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] without `sch_ingress`, [`Error::Missing`] for the device.
    pub fn add_clsact(&self, device: &str) -> Result<()> {
        let what = format!("give `{device}` a clsact");
        let mut message = self.tc_message(&what, device, PARENT)?;
        message.header.handle = TcHandle {
            major: 0xffff,
            minor: 0,
        };
        message.attributes = vec![TcAttribute::Kind("clsact".into())];
        let message = RouteNetlinkMessage::NewQueueDiscipline(message);
        match self.request(message, NLM_F_CREATE | NLM_F_EXCL) {
            Err(refusal) if refusal.errno() == libc::EEXIST => Ok(()),
            Err(refusal) if refusal.errno() == libc::ENOENT => Err(Error::Unsupported {
                what,
                feature: "clsact".into(),
                remedy: "load module `sch_ingress` (kernel option CONFIG_NET_SCH_INGRESS)".into(),
            }),
            Err(refusal) => Err(refused(&what, refusal)),
            Ok(_) => Ok(()),
        }
    }

    /// Removes the `clsact` of a device, and with it all its classifiers.
    ///
    /// # Errors
    /// [`Error::Missing`] for the device, [`Error::Kernel`] where it has none.
    pub fn remove_clsact(&self, device: &str) -> Result<()> {
        let what = format!("remove the clsact of `{device}`");
        let message = self.tc_message(&what, device, PARENT)?;
        let message = RouteNetlinkMessage::DelQueueDiscipline(message);
        self.ask(&what, device, message, 0).map(drop)
    }
}

/// A priority is listed with a line of its own, which has no options.
fn classifier(reply: &[u8]) -> Option<Classifier> {
    let kind = attribute(reply, TCMSG, TCA_KIND).map(text)?;
    let options = attribute(reply, TCMSG, TCA_OPTIONS)?;
    let of_program = |wanted| attribute(options, 0, wanted).filter(|_| kind == "bpf");
    Some(Classifier {
        name: of_program(TCA_BPF_NAME).map(text).unwrap_or_default(),
        program: of_program(TCA_BPF_ID).and_then(|id| u32_at(id, 0)),
        kind,
    })
}
