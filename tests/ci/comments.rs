//! A service that keeps comments, on loopback: as much of the interfaces of GitHub and GitLab as the scripts use.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// Comments of a page.
const PAGE: usize = 100;
/// The account that the token belongs to.
const OWN: (&str, u32) = ("github-actions[bot]", 17);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    GitHub,
    GitLab,
}

#[derive(Default)]
struct Kept {
    /// (author, text); the number of a comment is its place.
    comments: Vec<(String, String)>,
    tokens: Vec<String>,
}

/// A running service, which ends with the test.
pub(super) struct Site {
    address: SocketAddr,
    kept: Arc<Mutex<Kept>>,
}

impl Site {
    pub(super) fn github() -> Self {
        Self::start(Kind::GitHub, None)
    }

    pub(super) fn gitlab() -> Self {
        Self::start(Kind::GitLab, None)
    }

    /// One that answers every change with this status.
    pub(super) fn refusing(status: u16) -> Self {
        Self::start(Kind::GitHub, Some(status))
    }

    fn start(kind: Kind, refusal: Option<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let kept = Arc::new(Mutex::new(Kept::default()));
        let shared = kept.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let _ = serve(connection, kind, refusal, &shared);
            }
        });
        Self { address, kept }
    }

    pub(super) fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A comment of somebody.
    pub(super) fn say(&self, author: &str, text: &str) {
        let mut kept = self.kept.lock().unwrap();
        kept.comments.push((author.to_owned(), text.to_owned()));
    }

    /// All comments, in their order.
    pub(super) fn comments(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap();
        kept.comments.iter().map(|(_, text)| text.clone()).collect()
    }

    /// What each request was authorised by.
    pub(super) fn tokens(&self) -> Vec<String> {
        self.kept.lock().unwrap().tokens.clone()
    }
}

/// Answers the requests of one connection.
fn serve(
    connection: TcpStream,
    kind: Kind,
    refusal: Option<u16>,
    kept: &Mutex<Kept>,
) -> std::io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut writer = connection;
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let (mut size, mut token) = (0, String::new());
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => size = value.parse().unwrap(),
                "authorization" | "private-token" => token = value.to_owned(),
                _ => {}
            }
        }
        let mut body = vec![0; size];
        reader.read_exact(&mut body)?;
        let mut words = first.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let mut kept = kept.lock().unwrap();
        kept.tokens.push(token);
        let (status, answer) = match refusal {
            Some(status) if method != "GET" => (status, json!({"message": "no"})),
            _ => answer(kind, &mut kept, method, target, &body),
        };
        drop(kept);
        let text = answer.to_string();
        write!(
            writer,
            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        )?;
    }
}

fn answer(kind: Kind, kept: &mut Kept, method: &str, target: &str, body: &[u8]) -> (u16, Value) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let number = path.rsplit('/').next().unwrap();
    let text = || {
        let document: Value = serde_json::from_slice(body).unwrap();
        document["body"].as_str().unwrap().to_owned()
    };
    let list = match kind {
        Kind::GitHub => "/repos/someone/something/issues/7/comments",
        Kind::GitLab => "/projects/3/merge_requests/7/notes",
    };
    match method {
        "GET" if path == "/user" => (200, json!({"id": OWN.1})),
        "GET" if path == list || path.ends_with("/notes") => {
            let page = query.split('&').find_map(|part| part.strip_prefix("page="));
            let page: usize = page.unwrap().parse().unwrap();
            let all = kept.comments.iter().enumerate().map(|(place, (author, text))| {
                let id = if author == OWN.0 { OWN.1 } else { 99 };
                json!({"id": place, "body": text, "user": {"login": author}, "author": {"id": id}})
            });
            (200, all.skip((page - 1) * PAGE).take(PAGE).collect())
        }
        "POST" if path == list => {
            kept.comments.push((OWN.0.to_owned(), text()));
            (201, json!({"html_url": "https://example.org/7"}))
        }
        "PATCH" | "PUT" => {
            let (author, old) = &mut kept.comments[number.parse::<usize>().unwrap()];
            assert_eq!(author, OWN.0);
            *old = text();
            (200, json!({"html_url": "https://example.org/7"}))
        }
        _ => (404, json!({"message": format!("{method} {target}")})),
    }
}
