//! What runs at the hooks of a switch: its own programs, and those of others before and behind them.

use hopyard_net::{Handle, Link, Side, XdpHook};

use super::{Warning, WayOut};
use crate::hook::Hook;
use crate::layout::SWITCH_BEHIND;
use crate::programs;
use crate::running::{self, Running};
use crate::switch::Switch;

/// What is found wrong, or worth knowing.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) warnings: Vec<Warning>,
    /// Programs, filters and queues that frames do not meet which the switch redirects.
    bypassed: Vec<String>,
}

impl Findings {
    pub(super) fn warn(&mut self, sentence: String) {
        self.warnings.push(sentence.into());
    }

    pub(super) fn bypass(&mut self, what: &str, side: Side, device: &str) {
        let side = side_name(side);
        self.bypassed.push(format!("{what} ({side} of {device})"));
    }

    pub(super) fn into_warnings(mut self) -> Vec<Warning> {
        if !self.bypassed.is_empty() {
            let all = self.bypassed.join(", ");
            self.warn(format!(
                "frames that the switch hands on at a device BYPASS these programs, filters and queues there: {all}"
            ));
        }
        self.warnings
    }
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Ingress => "ingress",
        Side::Egress => "egress",
    }
}

impl Switch {
    /// Exactly one program of ours must run at a hook, the pinned one, and before those of others.
    pub(super) fn check_hook(
        &self,
        handle: &Handle,
        device: &str,
        hook: Hook,
        found: &mut Findings,
    ) {
        let side = hook.side();
        let looked = programs::identity(&self.directory, hook)
            .and_then(|own| Ok((own, running::at(handle, device, side)?)));
        let (own, there) = match looked {
            Ok(looked) => looked,
            Err(error) => return found.warn(error.to_string()),
        };
        let ours: Vec<u32> = there
            .iter()
            .filter(|one| one.is_ours())
            .filter_map(|one| one.program)
            .collect();
        if ours.is_empty() {
            let wrong = format!(
                "the switch's program does not run at `{device}` any more: somebody detached it; "
            );
            let warning = Warning::new(wrong, again(hook, device), "");
            return found.warnings.push(warning);
        }
        if ours != [own] {
            let wrong = format!("programs {ours:?} run at `{device}` instead of {own} alone: ");
            let warning = Warning::new(wrong, WayOut::Upgrade, "");
            return found.warnings.push(warning);
        }
        let is_asked_for = self
            .state
            .config()
            .is_ok_and(|config| config.flags & SWITCH_BEHIND != 0);
        let mut others = there.split(|one| one.program == Some(own));
        for one in others.next().unwrap_or_default() {
            let warning = comes_before(one, hook, device, is_asked_for);
            found.warnings.push(warning);
        }
        for Running { name, .. } in others.flatten() {
            found.bypass(name, side, device);
        }
    }
}

/// What a program of somebody else may do that comes before the switch's. Where that was asked for it is no fault, and
/// nothing has to mend it.
fn comes_before(one: &Running, hook: Hook, device: &str, is_asked_for: bool) -> Warning {
    let what = format!(
        "{one} runs at the {} of `{device}` before the switch's: it may pass frames to the host's stack unfiltered, \
         drop or redirect them, and those never reach the switch",
        side_name(hook.side()),
    );
    if is_asked_for {
        return Warning::from(what);
    }
    Warning::new(format!("{what}; detach it, then "), again(hook, device), "")
}

/// What puts the program of a hook in its place again.
fn again(hook: Hook, device: &str) -> WayOut {
    match hook {
        Hook::Port => WayOut::AddPortAgain,
        _ => WayOut::SetUplink {
            device: Some(device.to_owned()),
        },
    }
}

/// An XDP program comes before everything, at a device of the switch's.
pub(super) fn xdp_before(link: &Link) -> Option<String> {
    let place = match link.xdp? {
        XdpHook::Driver => "in the driver of",
        XdpHook::Stack => "at",
    };
    Some(format!(
        "an XDP program runs {place} `{}` before the switch's: it may drop or redirect frames, and those never reach \
         the switch",
        link.name
    ))
}
