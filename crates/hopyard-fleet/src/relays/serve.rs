//! The relay's side: runs the pairs that it is told to, and says what came of each.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::TryRecvError;
use std::time::Instant;

use hopyard_host::bounded::lines_as_they_come;

use super::home::Home;
use super::{BEAT, LONGEST_LINE, SILENCE, Said, Told, VERSION};
use crate::children::Children;
use crate::drive::{Engine, Job};
use crate::error::{Error, Result};
use crate::fleet::column_names;
use crate::plan::Plan;
use crate::store::Store;

/// Is a relay for whoever is at the other end of stdin and stdout, until that ends.
///
/// # Errors
/// It is told nothing that makes sense, or cannot write.
pub fn serve(program: PathBuf, is_stopped: impl Fn() -> bool) -> Result<()> {
    let told = lines_as_they_come(std::io::stdin(), LONGEST_LINE);
    let first = told
        .recv_timeout(SILENCE)
        .map_err(|_| wrong("nobody said which plan it is"))?;
    let plan = match plan_of(&first) {
        Ok(plan) => plan,
        Err(why) => {
            say(&Said::Broken { why: why.clone() })?;
            return Err(wrong(&why));
        }
    };
    let home = Home::make()?;
    let mut relaying = Relaying {
        store: Store::create(&home.path().join("fleet"), plan)?,
        engine: Children::new(program),
        running: 0,
        said: Instant::now(),
    };
    let columns = column_names(&relaying.store.fleet.columns);
    say(&Said::Ready {
        version: VERSION,
        columns,
    })?;
    let (mut heard, mut is_ending) = (Instant::now(), false);
    loop {
        let is_gone = loop {
            match told.try_recv() {
                // The controller would not hear what becomes of a pair that begins now.
                Ok(_) if is_ending => {}
                Ok(line) => {
                    heard = Instant::now();
                    relaying.act(&line)?;
                }
                Err(TryRecvError::Empty) => break false,
                Err(TryRecvError::Disconnected) => break true,
            }
        };
        if !is_ending && (is_gone || heard.elapsed() >= SILENCE || is_stopped()) {
            is_ending = true;
            relaying.engine.stop();
            if !is_gone {
                let why = if is_stopped() {
                    "it was told to end".to_owned()
                } else {
                    format!("it heard nothing for {} s", SILENCE.as_secs())
                };
                // The controller may be gone, too.
                let _told = say(&Said::Broken { why });
            }
        }
        if is_ending && relaying.running == 0 {
            return Ok(());
        }
        let told = relaying.tell_what_ended();
        if let (Err(error), false) = (told, is_ending) {
            relaying.engine.stop();
            return Err(error);
        }
    }
}

fn wrong(why: &str) -> Error {
    Error::Wrong(format!(
        "relay: {why}: it is started by `hopyard fleet run --relay`"
    ))
}

fn plan_of(line: &str) -> std::result::Result<Plan, String> {
    match serde_json::from_str(line) {
        Ok(Told::Plan {
            version: VERSION,
            plan,
        }) => {
            plan.check()?;
            Ok(*plan)
        }
        Ok(Told::Plan { version, .. }) => Err(format!(
            "version {version} of messages is not {VERSION}: use the same hopyard everywhere"
        )),
        Ok(_) => Err("the plan comes first".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

fn say(what: &Said) -> Result<()> {
    let failed = |source: std::io::Error| Error::Internal {
        what: "write to who started this relay",
        source,
    };
    let mut line = serde_json::to_vec(what).map_err(|e| failed(e.into()))?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line)
        .and_then(|()| out.flush())
        .map_err(failed)
}

struct Relaying {
    store: Store,
    engine: Children,
    running: usize,
    said: Instant,
}

impl Relaying {
    fn act(&mut self, line: &str) -> Result<()> {
        match serde_json::from_str(line) {
            Ok(Told::Start { place, attempt }) if place < self.store.fleet.pairs.len() => {
                self.engine.start(&self.store, Job { place, attempt })?;
                self.running += 1;
                Ok(())
            }
            Ok(Told::Stop) => {
                self.engine.stop();
                Ok(())
            }
            Ok(Told::Beat) => Ok(()),
            Ok(Told::Start { place, .. }) => Err(wrong(&format!("the plan has no pair {place}"))),
            Ok(Told::Plan { .. }) => Err(wrong("a plan comes once")),
            Err(e) => Err(wrong(&e.to_string())),
        }
    }

    fn tell_what_ended(&mut self) -> Result<()> {
        let all = self.engine.ended(&self.store)?;
        // Whoever asked may be gone, and then nobody hears of any.
        self.running -= all.len();
        for ended in all {
            let outcome = ended.outcome.map(Box::new);
            let attempt = outcome.as_ref().map_or(1, |o| o.attempt);
            let job = Job {
                place: ended.place,
                attempt,
            };
            let measured = outcome.as_ref().filter(|o| o.is_measured());
            let samples = measured.and_then(|_| self.engine.samples(&self.store, job).ok());
            remove(&self.store.place_of(ended.place, attempt));
            self.said = Instant::now();
            say(&Said::Ended {
                place: ended.place,
                outcome,
                answers: ended.answers,
                samples,
            })?;
        }
        if self.said.elapsed() >= BEAT {
            self.said = Instant::now();
            say(&Said::Beat)?;
        }
        Ok(())
    }
}

/// The run is told of; its directory would fill the machine.
fn remove(directory: &Path) {
    let _gone = std::fs::remove_dir_all(directory);
}
