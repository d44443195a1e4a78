//! A Chromium without a window, spoken to by its debugging pipe: messages of JSON, each ended by a nought.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

/// Far more than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const BETWEEN: Duration = Duration::from_millis(50);

pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    last: u64,
    /// What was complained about on the console.
    pub complaints: Vec<String>,
    _profile: tempfile::TempDir,
}

fn program() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let folders = std::env::var_os("PATH")?;
    let all = std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name)));
    all.into_iter().find(|path| path.is_file())
}

impl Browser {
    /// `None` where there is none.
    pub fn start() -> Option<Browser> {
        let Some(program) = program() else {
            eprintln!("skipped: there is no Chromium on the PATH");
            return None;
        };
        let profile = super::common::private_folder();
        let mut command = Command::new("sh");
        // The pipe is expected at the descriptors 3 and 4.
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null"]).arg(program);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.args(["--remote-debugging-pipe", "--hide-scrollbars"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let (mut bytes, mut piece) = (Vec::new(), [0; 1 << 16]);
            while let Ok(length @ 1..) = output.read(&mut piece) {
                bytes.extend_from_slice(&piece[..length]);
                while let Some(end) = bytes.iter().position(|&byte| byte == 0) {
                    let message: Vec<u8> = bytes.drain(..=end).collect();
                    let _ = sender.send(serde_json::from_slice(&message[..end]).unwrap());
                }
            }
        });
        let complaints = Vec::new();
        let mut browser =
            Browser { child, input, messages, session: None, last: 0, complaints, _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", target);
        browser.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.ask(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let message = self.messages.recv_timeout(PATIENCE).expect("the browser answers");
            if message["id"] == json!(self.last) {
                return match message.get("error") {
                    Some(error) => Err(error.to_string()),
                    None => Ok(message["result"].clone()),
                };
            }
            self.complaints.extend(complaint(&message));
        }
    }

    pub fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({"url": address}));
    }

    /// What an expression of the page's language is.
    pub fn value(&mut self, expression: &str) -> Value {
        self.evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// A page that is being left or loaded may have no answer.
    fn evaluate(&mut self, expression: &str) -> Result<Value, String> {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.ask("Runtime.evaluate", parameters)?;
        match result.get("exceptionDetails") {
            Some(details) => Err(details.to_string()),
            None => Ok(result["result"]["value"].clone()),
        }
    }

    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, what: &str, expression: &str) {
        let begin = Instant::now();
        while self.evaluate(expression) != Ok(json!(true)) {
            let body =
                if begin.elapsed() < PATIENCE { Value::Null } else { self.value("document.body.innerText") };
            assert!(begin.elapsed() < PATIENCE, "never happened: {what}; {body}; {:?}", self.complaints);
            std::thread::sleep(BETWEEN);
        }
    }

    /// Presses a key and lets it go.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowUp" => 38,
            "ArrowDown" => 40,
            "ArrowLeft" => 37,
            "Tab" => 9,
            _ => 0,
        };
        let text = match key {
            "Enter" => "\r",
            _ if key.chars().count() == 1 => key,
            _ => "",
        };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        let down = json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
        self.call("Input.dispatchKeyEvent", down);
        self.call(
            "Input.dispatchKeyEvent",
            json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code}),
        );
    }

    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    pub fn resize(&mut self, width: u32, height: u32) {
        let parameters =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", parameters);
    }

    /// Has the system prefer `dark` or `light`.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// A picture of what is seen, in the folder that `EBB_SCREENSHOTS` names, if it does.
    pub fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("EBB_SCREENSHOTS").map(PathBuf::from) else { return };
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let bytes = base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }
}

/// What a message of the browser complains about, if it does.
fn complaint(message: &Value) -> Option<String> {
    let parameters = &message["params"];
    let complains = match message["method"].as_str()? {
        "Runtime.exceptionThrown" => true,
        "Runtime.consoleAPICalled" => ["error", "warning"].contains(&parameters["type"].as_str()?),
        "Log.entryAdded" => ["error", "warning"].contains(&parameters["entry"]["level"].as_str()?),
        _ => false,
    };
    complains.then(|| parameters.to_string())
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
