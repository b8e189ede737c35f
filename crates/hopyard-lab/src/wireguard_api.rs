//! Telling WireGuard in user space what to do: lines of `key=value` over a stream (the cross-platform userspace interface of
//! WireGuard's own page).

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};

/// As much as is read of an answer: nobody has more to say of one peer.
const MOST: u64 = 64 * 1024;

/// What a program says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) public_key: String,
}

/// Sets values.
pub(crate) fn set<S>(stream: S, values: &[(&str, &str)]) -> io::Result<()>
where
    S: Read + Write + Copy,
{
    let mut request = "set=1\n".to_owned();
    for (key, value) in values {
        request.push_str(&format!("{key}={value}\n"));
    }
    ask(stream, &request).map(drop)
}

/// Asks for the public key.
pub(crate) fn get<S>(stream: S) -> io::Result<Said>
where
    S: Read + Write + Copy,
{
    let said = ask(stream, "get=1\n")?;
    let key = said
        .iter()
        .find_map(|line| line.strip_prefix("own_public_key="));
    let key = key.ok_or_else(|| {
        io::Error::new(ErrorKind::InvalidData, "it names no public key of its own")
    })?;
    Ok(Said {
        public_key: key.to_owned(),
    })
}

/// Sends a request and reads the answer up to its empty line; one that says an error number is an error.
fn ask<S>(mut stream: S, request: &str) -> io::Result<Vec<String>>
where
    S: Read + Write + Copy,
{
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut lines = Vec::new();
    for line in BufReader::new(stream.take(MOST)).lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let errno = lines.iter().find_map(|line| line.strip_prefix("errno="));
    match errno.map(str::parse) {
        Some(Ok(0)) => Ok(lines),
        Some(Ok(errno)) => Err(io::Error::from_raw_os_error(errno)),
        _ => Err(io::Error::new(
            ErrorKind::InvalidData,
            "its answer does not end in an error number",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    /// A program that answers one request.
    fn answering(answer: &'static str) -> (UnixStream, thread::JoinHandle<String>) {
        let (ours, mut its) = UnixStream::pair().unwrap();
        let program = thread::spawn(move || {
            let mut request = String::new();
            let mut lines = BufReader::new(its.try_clone().unwrap());
            while !request.ends_with("\n\n") {
                lines.read_line(&mut request).unwrap();
            }
            its.write_all(answer.as_bytes()).unwrap();
            request
        });
        (ours, program)
    }

    #[test]
    fn values_are_set_and_refusals_are_errors() {
        let (stream, program) = answering("errno=0\n\n");
        set(
            &stream,
            &[("private_key", "00ff"), ("listen_port", "51820")],
        )
        .unwrap();
        assert_eq!(
            program.join().unwrap(),
            "set=1\nprivate_key=00ff\nlisten_port=51820\n\n"
        );
        let (stream, _program) = answering("errno=98\n\n");
        let refused = set(&stream, &[("listen_port", "51820")]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn the_public_key_is_read_and_half_an_answer_is_none() {
        let (stream, _program) = answering("own_public_key=ab12\nlisten_port=51820\nerrno=0\n\n");
        let public_key = "ab12".to_owned();
        assert_eq!(get(&stream).unwrap(), Said { public_key });
        for answer in ["own_public_key=ab12\n", "listen_port=1\nerrno=0\n\n", "\n"] {
            let (stream, _program) = answering(answer);
            assert_eq!(
                get(&stream).unwrap_err().kind(),
                ErrorKind::InvalidData,
                "{answer:?}"
            );
        }
    }
}
