//! A real browser without a screen, spoken to over a pipe in its DevTools protocol
//! (<https://chromedevtools.github.io/devtools-protocol/>): messages of JSON, each ended by a zero byte.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use super::plan::Room;
use super::procs;
use super::skip::skip_part;

/// A page in a browser of its own, whose files are in a room.
pub(crate) struct Browser {
    child: Child,
    commands: File,
    answers: BufReader<File>,
    session: Value,
    next: u64,
    /// Everything that was told without being asked for.
    pub(crate) events: Vec<Value>,
}

impl Browser {
    /// Starts one. Without a package of it, as on Ubuntu, what takes it is skipped by name.
    #[track_caller]
    pub(crate) fn start(room: &Room) -> Option<Self> {
        let places = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&places).any(|place| place.join("chromium").exists()) {
            skip_part("chromium", false, "there is no such program in PATH");
            return None;
        }
        let pipes = ["commands", "answers"].map(|name| room.at(name));
        for pipe in &pipes {
            mkfifo(pipe, Mode::S_IRWXU).unwrap();
        }
        let flags =
            "--headless=new --no-sandbox --disable-gpu --no-first-run --remote-debugging-pipe";
        let script =
            format!("exec chromium {flags} --user-data-dir=\"$3\" about:blank 3<\"$1\" 4>\"$2\"");
        let child = Command::new("sh")
            .args(["-c", &script, "sh"])
            .args(&pipes)
            .arg(room.at("browser"))
            .env("HOME", room.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let [commands, answers] = &pipes;
        let mut browser = Self {
            child,
            commands: File::options().write(true).open(commands).unwrap(),
            answers: BufReader::new(File::open(answers).unwrap()),
            session: Value::Null,
            next: 0,
            events: Vec::new(),
        };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let wanted = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = browser.call("Target.attachToTarget", &wanted)["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Calls a method and waits for its answer.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.commands
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
        loop {
            let answer = self.read();
            if answer["id"] == self.next {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.answers.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser ended");
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Opens a file and waits until it is there with all it asks for.
    pub(crate) fn open(&mut self, file: &Path) {
        self.events
            .retain(|event| event["method"] != "Page.loadEventFired");
        let url = format!("file://{}", file.display());
        self.call("Page.navigate", &json!({ "url": url }));
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let event = self.read();
            self.events.push(event);
        }
    }

    /// What a script comes to.
    pub(crate) fn evaluate(&mut self, script: &str) -> Value {
        let parameters = json!({"expression": script, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{answer:#}");
        answer["result"]["value"].clone()
    }

    /// CPU time that the browser's processes have used.
    pub(crate) fn cpu_time(&self) -> Duration {
        let below = procs::below(self.child.id());
        let pids = below.iter().map(|process| process.pid);
        pids.chain([self.child.id()])
            .filter_map(procs::cpu_time)
            .sum()
    }

    /// Presses a key by its name in the DOM, and lets it go.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            " " => (32, " "),
            other => panic!("no code for {other}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event =
                json!({"type": kind, "key": key, "windowsVirtualKeyCode": code, "text": text});
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// A window of this width, in `light` or `dark`.
    pub(crate) fn show(&mut self, width: u32, scheme: &str) {
        let size = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": scheme }));
    }

    /// The whole page as a picture, PNG in base64.
    pub(crate) fn picture(&mut self) -> String {
        let parameters = json!({"format": "png", "captureBeyondViewport": true});
        let answer = self.call("Page.captureScreenshot", &parameters);
        answer["data"].as_str().unwrap().to_owned()
    }

    /// The page fits on narrow and wide screens, light and dark, and its text can be read. A picture of each.
    #[track_caller]
    pub(crate) fn fits_any_screen(&mut self) -> Vec<String> {
        let screens = [
            ("light", 1280),
            ("dark", 1280),
            ("light", 360),
            ("dark", 360),
        ];
        let picture = |(scheme, width): (&str, u32)| {
            self.show(width, scheme);
            let wide = self.evaluate("document.documentElement.scrollWidth");
            let wide = wide.as_u64().unwrap();
            assert!(wide <= width.into(), "{wide} of {width} pixels, {scheme}");
            let faint = self.evaluate(CONTRAST);
            assert_eq!(
                faint,
                json!([]),
                "{scheme} {width}: text that is hard to read: {faint:#}"
            );
            self.picture()
        };
        screens.map(picture).into()
    }

    /// Nothing went wrong in the browser, and nothing was asked for but the file itself.
    #[track_caller]
    pub(crate) fn is_quiet(&self, file: &Path) {
        for kind in [
            "Log.entryAdded",
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
        ] {
            assert!(self.told(kind).is_empty(), "{:#?}", self.told(kind));
        }
        let own = format!("file://{}", file.display());
        let asked: Vec<String> = self
            .told("Network.requestWillBeSent")
            .iter()
            .map(|event| event["request"]["url"].as_str().unwrap().to_owned())
            .filter(|url| *url != own && url != "data:,")
            .collect();
        assert!(asked.is_empty(), "{asked:?}");
    }

    /// What it told of this kind.
    pub(crate) fn told(&self, method: &str) -> Vec<&Value> {
        let told = self.events.iter().filter(|event| event["method"] == method);
        told.map(|event| &event["params"]).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends its own processes when its pipe says so, and may have gone already.
        let _ = self
            .commands
            .write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.child.wait();
    }
}

/// Texts whose colour is too near to what is behind them, by WCAG 2's formula.
const CONTRAST: &str = r"(() => {
  const light = ([r, g, b]) => { const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const parts = colour => colour.match(/[\d.]+/g).map(Number);
  const behind = e => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const own = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  const faint = [];
  for (const e of document.querySelectorAll('body *')) {
    if (!own(e) || ['title', 'desc', 'STYLE'].includes(e.tagName)) continue;
    const style = getComputedStyle(e), svg = e.namespaceURI.endsWith('svg');
    const [a, b] = [light(parts(svg ? style.fill : style.color)), light(behind(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(e.tagName + ' ' + e.textContent.slice(0, 40));
  }
  return faint;
})()";
