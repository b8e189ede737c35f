//! What can go wrong with a lab on a cable between two machines.

/// A card, a path or the far machine that such a lab cannot have.
#[derive(Debug, thiserror::Error)]
pub enum Cable {
    /// A card of this machine, or what is to be done with it.
    #[error("card `{card}`: {why}")]
    Card {
        /// Its name.
        card: String,
        /// Why not, and what to do.
        why: String,
    },
    /// The record of a card that is away is not understood.
    #[error(
        "the record of a card in {} is damaged, or of another version of hopyard: run `hopyard clean` of the version that took the card, or \
         move it back by hand (`nsenter --net={}/namespace ip link`) and remove that directory", .directory.display(), .directory.display()
    )]
    Record {
        /// Its directory.
        directory: std::path::PathBuf,
        /// What is wrong with its text.
        #[source]
        source: serde_json::Error,
    },
    /// A path that has no far end on another machine.
    #[error("path `{path}` cannot be built over a real cable: choose among {choices}")]
    Path {
        /// The path.
        path: &'static str,
        /// Those that can.
        choices: String,
    },
    /// The other end of a lab across two machines.
    #[error("the far machine (`{prefix}`): {why}")]
    Far {
        /// The command that leads there.
        prefix: String,
        /// What it said, or did not.
        why: String,
    },
}
