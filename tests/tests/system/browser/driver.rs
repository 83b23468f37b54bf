//! A real browser, Debian's `chromium-headless-shell` or `chromium`, driven through `chromium-driver`. Tests fail on console
//! errors and on blocked loads.

use std::fmt::Debug;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::wd::{WebDriverCompatibleCommand, WindowHandle};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use napreduce_tests::{Folder, skipped};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const DRIVER: &str = "chromedriver";
const SHELL: &str = "chromium-headless-shell";
const DEADLINE: Duration = Duration::from_secs(180);

/// The driver chooses a free port on `::1`, and fails if that port is used on 127.0.0.1. A recently closed
/// connection is enough, and the tests close thousands. The next start chooses another port.
const STARTS: usize = 20;

/// Headless Chromium. All methods block.
pub struct Browser {
    runtime: Runtime,
    client: Client,
    /// The driver must end after the browser.
    _driver: Driver,
}

struct Driver(Child);

impl Driver {
    /// Starts a driver; returns its port, or `None` after reporting a skip.
    fn start(folder: &Folder) -> Option<(Driver, u16)> {
        for _ in 0..STARTS {
            let log = std::fs::File::create(folder.path("driver.log")).expect("a log");
            let mut command = Command::new(DRIVER);
            command
                .arg("--port=0")
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(log);
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(error) => {
                    let install = "install chromium and chromium-driver (Debian)";
                    skipped("browser", &format!("{DRIVER}: {error}; {install}"));
                    return None;
                }
            };
            let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
            let driver = Driver(child);
            let mut said = String::new();
            for line in stdout.lines() {
                let line = line.expect("what the driver says");
                if let Some((_, port)) = line.split_once("successfully on port ") {
                    return Some((driver, port.trim_end_matches('.').parse().expect("a port")));
                }
                said = said + &line + "\n";
            }
            assert!(
                said.contains("port not available"),
                "{DRIVER} has ended and says no port:\n{said}"
            );
        }
        panic!("{DRIVER} found no port in {STARTS} starts");
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Fails if it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fetches the console lines since the last call.
#[derive(Debug)]
struct ConsoleLog;

impl WebDriverCompatibleCommand for ConsoleLog {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/se/log", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (
            http::Method::POST,
            Some(json!({ "type": "browser" }).to_string()),
        )
    }
}

/// A command of the DevTools protocol.
#[derive(Debug)]
struct DevTools(Value);

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!(
            "session/{}/goog/cdp/execute",
            session.unwrap_or_default()
        ))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.0.to_string()))
    }
}

/// Returns the path of the browser without windows, if it is installed. It needs 60 % of the processor time of the browser
/// that only does not show its windows.
fn headless_shell() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut programs = std::env::split_paths(&folders).map(|folder| folder.join(SHELL));
    programs.find(|program| program.exists())
}

impl Browser {
    /// Starts a browser; returns `None` after reporting a skip.
    pub fn start(folder: &Folder) -> Option<Browser> {
        let (driver, port) = Driver::start(folder)?;
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
            &format!("--user-data-dir={}", folder.path("profile").display()),
        ];
        let mut capabilities = json!({
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        if let Some(shell) = headless_shell() {
            capabilities["browserName"] = json!("chrome-headless-shell");
            capabilities["goog:chromeOptions"]["binary"] = json!(shell);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities.as_object().expect("an object").clone());
        let connected = runtime.block_on(builder.connect(&format!("http://127.0.0.1:{port}")));
        Some(Browser {
            client: connected.expect("a session"),
            runtime,
            _driver: driver,
        })
    }

    /// Opens an address.
    pub fn show(&self, address: &str) {
        self.runtime
            .block_on(self.client.goto(address))
            .expect("the page opens");
    }

    /// Opens an address, and waits until the page shows something.
    pub fn open(&self, address: &str) {
        self.show(address);
        self.until(
            "the page shows something",
            "return document.getElementById('main').dataset.ready === 'true'",
        );
    }

    /// Runs a command of the DevTools protocol; returns its result.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        let asked = DevTools(json!({ "cmd": command, "params": parameters }));
        self.runtime
            .block_on(self.client.issue_cmd(asked))
            .expect("it is done")
    }

    /// Runs a script; returns its result.
    pub fn run(&self, script: &str) -> Value {
        self.runtime
            .block_on(self.client.execute(script, Vec::new()))
            .unwrap_or_else(|error| panic!("{error}: {script}"))
    }

    /// Waits until a script returns neither null nor false.
    pub fn until(&self, what: &str, script: &str) -> Value {
        let begin = Instant::now();
        loop {
            let given = self.run(script);
            if !matches!(given, Value::Null | Value::Bool(false)) {
                return given;
            }
            assert!(
                begin.elapsed() < DEADLINE,
                "{what} has not happened; the page says:\n{}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the page shows these words.
    pub fn until_says(&self, words: &str) {
        let words = json!(words);
        self.until(
            &format!("{words} appears"),
            &format!("return document.body.innerText.includes({words})"),
        );
    }

    /// The visible text.
    pub fn text(&self) -> String {
        self.run("return document.body.innerText")
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Waits for a button or link with this text and clicks it.
    pub fn click(&self, words: &str) {
        let path = format!("//*[self::a or self::button][normalize-space()='{words}']");
        // A page is hidden until it is complete.
        let is_there = format!(
            "return document.evaluate(\"{path}\", document, null, 9, null).singleNodeValue\
             ?.checkVisibility({{ visibilityProperty: true }}) === true"
        );
        self.until(&format!("{words:?} can be clicked"), &is_there);
        let clicked = self
            .runtime
            .block_on(async { self.client.find(Locator::XPath(&path)).await?.click().await });
        clicked.unwrap_or_else(|error| panic!("{words}: {error}\n{}", self.text()));
    }

    /// Opens an address in a new tab, which becomes the current one; returns its handle.
    pub fn tab(&self, address: &str) -> WindowHandle {
        let opened = self.runtime.block_on(async {
            let handle = self.client.new_window(true).await?.handle;
            self.client
                .switch_to_window(handle.clone())
                .await
                .map(|()| handle)
        });
        let handle = opened.expect("a tab");
        self.open(address);
        handle
    }

    /// The current tab.
    pub fn this_tab(&self) -> WindowHandle {
        self.runtime.block_on(self.client.window()).expect("a tab")
    }

    /// Switches to a tab.
    pub fn turn_to(&self, tab: &WindowHandle) {
        self.runtime
            .block_on(self.client.switch_to_window(tab.clone()))
            .expect("another tab");
    }

    /// Closes the current tab.
    pub fn close_tab(&self) {
        self.runtime
            .block_on(self.client.close_window())
            .expect("it is closed");
    }

    /// Types into the element with this selector.
    pub fn keys(&self, selector: &str, keys: &str) {
        let typed = self.runtime.block_on(async {
            self.client
                .find(Locator::Css(selector))
                .await?
                .send_keys(keys)
                .await
        });
        typed.unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    /// Resizes the window.
    pub fn resize(&self, width: u32, height: u32) {
        self.runtime
            .block_on(self.client.set_window_size(width, height))
            .expect("another size");
    }

    /// As [`Browser::picture`], if the variable `NAPREDUCE_PICTURES` is set. Most tests need no picture, and pictures take a
    /// quarter of a second each.
    pub fn picture_on_request(&self, name: &str) {
        if std::env::var_os("NAPREDUCE_PICTURES").is_some() {
            self.picture(name);
        }
    }

    /// Saves a screenshot as `target/browser/NAME.png`.
    pub fn picture(&self, name: &str) {
        let picture = self
            .runtime
            .block_on(self.client.screenshot())
            .expect("a picture");
        let target = std::env::current_exe().expect("a path");
        let target = target
            .ancestors()
            .find(|folder| folder.ends_with("target"))
            .expect("a target folder");
        let folder = target.join("browser");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(format!("{name}.png")), picture).expect("a file");
    }

    /// Like [`Browser::has_no_complaints`], for a history so large that its first answer may take longer than a server
    /// without optimization has on a busy machine. The server refuses with 503 then, and the page asks again.
    pub fn has_no_complaints_but_slow_answers(&self) {
        self.has_no_complaints_but(&["503 (Service Unavailable)"]);
    }

    /// Fails on new console lines, except those that contain an allowed word.
    pub fn has_no_complaints_but(&self, allowed: &[&str]) {
        let log = self
            .runtime
            .block_on(self.client.issue_cmd(ConsoleLog))
            .expect("the console");
        let lines = log
            .as_array()
            .expect("lines")
            .iter()
            .filter_map(|line| line["message"].as_str());
        let wrong: Vec<&str> = lines
            .filter(|line| !allowed.iter().any(|words| line.contains(words)))
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    pub fn has_no_complaints(&self) {
        self.has_no_complaints_but(&[]);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A failure to close does not matter.
        let _ = self.runtime.block_on(self.client.clone().close());
    }
}
