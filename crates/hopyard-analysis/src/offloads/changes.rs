//! Which combinations of offloads are worth measuring.

use crate::model::{OffloadChange, OffloadFlag, Switch};

/// Flags whose effect depends on another's, and their state while the rest has the opposite one. GSO and GRO matter
/// when no device segments, so they count with TSO off. TSO needs checksums (`netdev_fix_features`), so it can only be
/// on with them.
const TOGETHER: [(Switch, [OffloadFlag; 2]); 3] = [
    (Switch::Off, [OffloadFlag::Tso, OffloadFlag::Gso]),
    (Switch::Off, [OffloadFlag::Tso, OffloadFlag::Gro]),
    (Switch::On, [OffloadFlag::TxChecksum, OffloadFlag::Tso]),
];

/// The combinations of these flags: all on, all off, each alone switched either way, and the pairs that interact. Of
/// combinations that read back alike the first is measured. Flags switched off come first, because findings are based
/// on them.
#[must_use]
pub fn offload_changes(flags: &[OffloadFlag]) -> Vec<OffloadChange> {
    let of = |rest: Switch| {
        let singles = flags.iter().map(move |flag| vec![*flag]);
        let together = TOGETHER.iter().filter(move |(to, _)| *to == rest.other());
        let pairs = together.map(|(_, pair)| pair.to_vec());
        let can_be = |own: &Vec<OffloadFlag>| own.iter().all(|flag| flags.contains(flag));
        singles
            .chain(pairs.filter(can_be))
            .map(move |own| OffloadChange::but(rest, &own))
    };
    [Switch::On, Switch::Off]
        .map(OffloadChange::all)
        .into_iter()
        .chain(of(Switch::On))
        .chain(of(Switch::Off))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(changes: &[OffloadChange]) -> String {
        let words: Vec<String> = changes.iter().map(OffloadChange::to_string).collect();
        words.join("\n")
    }

    #[test]
    fn each_flag_alone_and_the_pairs_that_interact() {
        use OffloadFlag::{Gro, Gso, Tso, TxChecksum};
        insta::assert_snapshot!(words(&offload_changes(&[TxChecksum, Tso, Gso, Gro])), @"
        all on
        all off
        tx_checksum off, rest on
        tso off, rest on
        gso off, rest on
        gro off, rest on
        tso and gso off, rest on
        tso and gro off, rest on
        tx_checksum on, rest off
        tso on, rest off
        gso on, rest off
        gro on, rest off
        tx_checksum and tso on, rest off
        ");
    }

    #[test]
    fn no_pair_of_a_flag_that_cannot_be_changed() {
        use OffloadFlag::{Gro, Gso};
        insta::assert_snapshot!(words(&offload_changes(&[Gso, Gro])), @"
        all on
        all off
        gso off, rest on
        gro off, rest on
        gso on, rest off
        gro on, rest off
        ");
    }
}
