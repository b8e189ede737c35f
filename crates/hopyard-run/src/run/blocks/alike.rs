//! All samples of a cell are of the same thing: between two calls of a run that is continued, another kernel for guests may have
//! come, a module for a switch, or another machine behind an endpoint's command.

use crate::model::{BusyCpus, EndpointUsed, Measurement};

/// Why a sample is not one of those before it, as a sentence.
pub(super) fn unlike(before: &Measurement, now: &Measurement) -> Option<String> {
    // Not every version and not every end tells how many CPUs there were.
    let words = |all: BusyCpus| format!("{} CPUs allowed", all.cpus);
    let cpus = before.allowed_cpus.zip(now.allowed_cpus);
    let cpus = cpus.map(|(one, other)| (words(one), words(other)));
    let mut both = cpus
        .into_iter()
        .chain(found(before).into_iter().zip(found(now)));
    let (before, now) = both.find(|(before, now)| before != now)?;
    Some(format!(
        "measured with {now}, but earlier samples of this cell with {before}: start a new run"
    ))
}

/// What a sample was measured with.
fn found(measured: &Measurement) -> [String; 4] {
    let ends = measured.endpoints.as_ref();
    let [client, server] = [ends.map(|e| &e.client), ends.map(|e| &e.server)];
    [
        or(measured.guest.as_ref(), "no guest"),
        or(measured.datapath.as_ref(), "no switch"),
        end("client", client),
        end("server", server),
    ]
}

fn or(thing: Option<impl ToString>, without: &str) -> String {
    thing.map_or_else(|| without.to_owned(), |thing| thing.to_string())
}

fn end(role: &str, found: Option<&EndpointUsed>) -> String {
    let Some(found) = found else {
        return format!("the {role} of a lab");
    };
    let machine = found.machine.as_ref();
    let cpus = machine.map_or(0, |machine| machine.cpus);
    let model = machine.and_then(|machine| machine.cpu_model.as_deref());
    format!(
        "a {role} with Linux {} on {cpus} CPUs of {}",
        found.kernel,
        model.unwrap_or("an unknown kind")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assess::testing::measured;
    use crate::model::{Datapath, DatapathKind, GuestUsed};

    fn in_guest(kernel: &str, emulated: bool) -> Measurement {
        let guest = Some(GuestUsed {
            kernel: kernel.to_owned(),
            cpus: 1,
            emulated,
        });
        Measurement {
            guest,
            ..measured(1)
        }
    }

    fn by_switch(kind: DatapathKind) -> Measurement {
        let datapath = Some(Datapath {
            switch: "Open vSwitch".to_owned(),
            version: "3.1".to_owned(),
            kind,
            hook: None,
        });
        Measurement {
            datapath,
            ..measured(1)
        }
    }

    #[test]
    fn samples_on_other_cpus_are_not_mixed() {
        let on = |cpus| Measurement {
            allowed_cpus: Some(BusyCpus {
                cpus,
                busy_ratio: 0.5,
            }),
            ..measured(1)
        };
        assert_eq!(unlike(&on(2), &on(2)), None);
        assert_eq!(unlike(&on(2), &measured(1)), None);
        let said = unlike(&on(2), &on(8)).unwrap();
        assert!(
            said.contains("8 CPUs allowed") && said.contains("2 CPUs"),
            "{said}"
        );
    }

    #[test]
    fn samples_of_two_kernels_or_two_switches_are_not_mixed() {
        let old = in_guest("6.1", true);
        assert_eq!(unlike(&old, &in_guest("6.1", true)), None);
        assert_eq!(unlike(&measured(1), &measured(1)), None);
        let said = unlike(&old, &in_guest("6.12", true)).unwrap();
        assert!(said.contains("6.1,") && said.contains("6.12"), "{said}");
        assert!(unlike(&old, &in_guest("6.1", false)).is_some());
        let [kernel, program] = [DatapathKind::Kernel, DatapathKind::Userspace].map(by_switch);
        assert_eq!(unlike(&kernel, &kernel), None);
        let said = unlike(&kernel, &program).unwrap();
        assert!(said.contains("userspace datapath"), "{said}");
    }
}
