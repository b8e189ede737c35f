//! A device's `clsact` queueing discipline and its classifiers, among them eBPF programs (net/sched/cls_bpf.c): the
//! hooks that kernels before tcx have.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle};

use crate::attrs::{TCA_KIND, TCMSG, attribute, text, u32_at};
use crate::error::{Error, Result};
use crate::handle::{Handle, refused};

const TCA_OPTIONS: u16 = 2;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_ID: u16 = 11;

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

impl Handle {
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
