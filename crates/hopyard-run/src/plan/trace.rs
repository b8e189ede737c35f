//! Traces of load `udp_trace`, read from their files.

use sha2::{Digest, Sha256};

use crate::bounded;
use crate::load::LoadSpec;
use crate::model::{Axes, LoadKind, NotATrace, Replay, Trace, TraceSummary, short_digest};

/// Most bytes of a file: comments and all.
const MOST_BYTES: u64 = 8 << 20;

/// A trace cannot be read or replayed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read the trace {file}")]
    File {
        file: String,
        source: std::io::Error,
    },
    /// What is in it is no trace.
    #[error("{file}: {wrong}")]
    Wrong { file: String, wrong: NotATrace },
    /// It is none as a whole.
    #[error("{file} {why}")]
    Whole { file: String, why: &'static str },
}

/// What the workers of a cell are told, with the trace that it replays.
///
/// # Errors
/// The trace cannot be read, or has changed since its digest was taken.
pub(crate) fn spec_of(load: LoadKind, axes: &Axes) -> Result<LoadSpec, TraceError> {
    let spec = LoadSpec::new(load, axes);
    match &axes.trace {
        Some(trace @ Trace::File { .. }) if load.replays() => Ok(spec.replaying(read(trace)?)),
        _ => Ok(spec),
    }
}

/// The same trace with the digest of its datagrams.
///
/// # Errors
/// As [`spec_of`].
pub(super) fn with_digest(trace: &Trace) -> Result<Trace, TraceError> {
    match trace {
        Trace::Sample => Ok(Trace::Sample),
        Trace::File { name, .. } => Ok(Trace::File {
            name: name.clone(),
            digest: Some(digest(&read(trace)?)),
        }),
    }
}

/// What the traces of some cells are, each once.
///
/// # Errors
/// As [`spec_of`].
pub(crate) fn summaries<'a>(
    cells: impl Iterator<Item = &'a Axes>,
) -> Result<Vec<TraceSummary>, TraceError> {
    let mut summaries: Vec<TraceSummary> = Vec::new();
    for trace in cells.filter_map(|axes| axes.trace.as_ref()) {
        let name = trace.to_string();
        if summaries.iter().all(|known| known.trace != name) {
            summaries.push(read(trace)?.summary(name));
        }
    }
    Ok(summaries)
}

/// The datagrams, which have not changed since their digest was taken.
fn read(trace: &Trace) -> Result<Replay, TraceError> {
    let Trace::File {
        name,
        digest: known,
    } = trace
    else {
        return Ok(Replay::sample());
    };
    let whole = |why| TraceError::Whole {
        file: name.clone(),
        why,
    };
    let unread = |source| TraceError::File {
        file: name.clone(),
        source,
    };
    let bytes = bounded::read_named(name, MOST_BYTES).map_err(unread)?;
    let bytes = bytes.ok_or_else(|| whole("is larger than 8 MiB: cut the trace"))?;
    let text = String::from_utf8(bytes).map_err(|_| whole("is no text"))?;
    let replay = Replay::parse(&text).map_err(|wrong| TraceError::Wrong {
        file: name.clone(),
        wrong,
    })?;
    if known
        .as_ref()
        .is_some_and(|known| *known != digest(&replay))
    {
        return Err(whole(
            "has other datagrams than when the run began: start another run, or put back what it was",
        ));
    }
    Ok(replay)
}

/// Of sizes and gaps, however they are written.
fn digest(replay: &Replay) -> String {
    short_digest(&Sha256::digest(replay.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(trace: Trace) -> Axes {
        Axes {
            trace: Some(trace),
            ..Axes::default()
        }
    }

    #[test]
    fn a_digest_is_of_the_datagrams_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.csv");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        let named: Trace = file.to_str().unwrap().parse().unwrap();
        write("0.1,100\n0.2,200\n");
        let known = with_digest(&named).unwrap();
        assert_ne!(known, named);
        write("gap_s,bytes\n# the same\n0.100,100\n0.2,200\n");
        assert_eq!(with_digest(&known).unwrap(), known);
        let spec = spec_of(LoadKind::UdpTrace, &axes(known.clone())).unwrap();
        assert_eq!((spec.message_size, spec.check()), (200, Ok(())));
        let told = summaries([&axes(known.clone()), &axes(known.clone())].into_iter()).unwrap();
        assert_eq!((told.len(), told[0].datagrams), (1, 2));
        assert_eq!(told[0].trace, known.to_string());
        write("0.1,100\n0.2,201\n");
        let error = spec_of(LoadKind::UdpTrace, &axes(known)).unwrap_err();
        assert!(error.to_string().contains("other datagrams"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said_with_file_line_and_column() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.csv");
        let named: Trace = file.to_str().unwrap().parse().unwrap();
        let error = with_digest(&named).unwrap_err().to_string();
        assert!(
            error.contains("cannot read the trace") && error.contains("a.csv"),
            "{error}"
        );
        std::fs::write(&file, "0.1,100\n0.1,7\n").unwrap();
        let error = with_digest(&named).unwrap_err().to_string();
        assert!(
            error.contains("a.csv: line 2, column 5: a datagram of 7 bytes"),
            "{error}"
        );
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        assert!(
            with_digest(&named)
                .unwrap_err()
                .to_string()
                .ends_with("is no text")
        );
        let large = vec![b'#'; usize::try_from(MOST_BYTES).unwrap() + 1];
        std::fs::write(&file, large).unwrap();
        let error = with_digest(&named).unwrap_err().to_string();
        assert!(error.contains("larger than 8 MiB"), "{error}");
    }
}
