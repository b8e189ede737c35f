//! The small static worker, for endpoints that have no hopyard: found here, taken there, gone when it ends.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::programs;
use crate::units::hex;

const NAME: &str = "hopyard-worker";
/// It is one of less than 2 MB; a build with debug information is larger.
const MOST_BYTES: u64 = 256 << 20;

/// A worker to be brought along.
pub(super) struct Carried {
    bytes: Vec<u8>,
}

impl Carried {
    /// The one beside this program, or in PATH; a sentence where there is none.
    pub(super) fn find() -> Result<Self, String> {
        let beside = std::env::current_exe().ok();
        let beside = beside.and_then(|own| Some(own.parent()?.join(NAME)));
        let file = beside
            .filter(|file| file.is_file())
            .or_else(|| programs::in_path(NAME))
            .ok_or_else(|| {
                format!("there is no `{NAME}` beside hopyard or in PATH to be copied there either")
            })?;
        Self::read(&file)
    }

    fn read(file: &Path) -> Result<Self, String> {
        let cannot = |why: &dyn std::fmt::Display| format!("cannot copy {}: {why}", file.display());
        let length = fs::metadata(file).map_err(|e| cannot(&e))?.len();
        if length > MOST_BYTES {
            return Err(cannot(&format!(
                "{length} bytes are more than any worker has"
            )));
        }
        let mut bytes = fs::read(file).map_err(|e| cannot(&e))?;
        // What passes it on may hold back what comes after the last newline (`srun`).
        bytes.push(b'\n');
        Ok(Self { bytes })
    }

    /// What a shell there does with it, in one line: it reads no further line, so that it takes nothing of what is the
    /// program's. The program removes itself and its directory as it starts; the shell does where it does not start.
    pub(super) fn script(&self) -> String {
        let (length, hash) = (self.bytes.len(), hex(&Sha256::digest(&self.bytes)));
        let machine = std::env::consts::ARCH;
        [
            "{ umask 077; d=;",
            r#"no() { rm -rf "$d"; printf '{"is":"failed","cause":"%s"}\n' "$1"; exit 1; };"#,
            "command -v mktemp >/dev/null || no 'there is no mktemp to make a place for the worker with';",
            "command -v sha256sum >/dev/null || no 'there is no sha256sum to check the worker with';",
            &format!(
                r#"[ "$(uname -m)" = {machine} ] || no "it is a $(uname -m), and the worker is for {machine}: put hopyard into PATH there";"#
            ),
            r#"d=$(mktemp -d "${TMPDIR:-/tmp}/hopyard-worker.XXXXXX") || no 'no directory can be made for the worker: set TMPDIR';"#,
            r#"trap 'rm -rf "$d"; exit 1' HUP INT TERM PIPE;"#,
            "t=; if command -v timeout >/dev/null; then t='timeout 60'; fi;",
            r#"printf '{"is":"send"}\n';"#,
            &format!(r#"$t head -c {length} > "$d/hopyard-worker" || no 'the worker did not arrive';"#),
            &format!(
                r#"[ "$(sha256sum < "$d/hopyard-worker" | cut -c1-64)" = {hash} ] || no 'the worker did not arrive whole';"#
            ),
            r#"chmod 700 "$d/hopyard-worker" || no 'the worker cannot be made a program';"#,
            r#""$d/hopyard-worker" --once; s=$?;"#,
            r#"[ $s != 126 ] || no "no program can be run from $d: set TMPDIR";"#,
            r#"rm -rf "$d"; exit $s; }"#,
        ]
        .join(" ")
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_one_line_with_length_and_hash() {
        let room = tempfile::tempdir().unwrap();
        let file = room.path().join("program");
        fs::write(&file, "abc").unwrap();
        let carried = Carried::read(&file).unwrap();
        let script = carried.script();
        assert!(!script.contains('\n'), "{script}");
        assert!(script.contains("head -c 4 "), "{script}");
        // printf 'abc\n' | sha256sum
        let hash = "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb";
        assert!(script.contains(hash), "{script}");
    }
}
