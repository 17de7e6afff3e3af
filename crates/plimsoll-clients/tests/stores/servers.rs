//! Real servers for tests: `python3 -m tests.servers` starts and stops them, and is spoken to in
//! lines.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A running server of a test; it ends with this.
pub struct Server {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    facts: Value,
}

impl Server {
    /// A server of its own; `None`, with a line that says how to install it, where it is not there
    /// and not required.
    pub fn start(kind: &str) -> Option<Server> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut process = Command::new("python3")
            .args(["-m", "tests.servers", kind])
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut server = Server { process, input, output, facts: Value::Null };
        server.facts = server.answer();
        if let Some(missing) = server.facts["missing"].as_str() {
            assert!(server.facts["required"] != Value::Bool(true), "{missing}");
            eprintln!("skipped: {missing}");
            return None;
        }
        Some(server)
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it speaks");
        serde_json::from_str(&line).expect("a server that starts says so in JSON")
    }

    fn tell(&mut self, line: &str) -> Value {
        let input = self.input.as_mut().expect("it listens");
        writeln!(input, "{line}").expect("it listens");
        let answer = self.answer();
        assert!(answer["error"].is_null(), "{line}: {}", answer["error"]);
        answer["told"].clone()
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) {
        self.tell("kill");
    }

    /// Starts it again.
    pub fn start_again(&mut self) {
        self.tell("start");
    }

    /// What its administrator says in a database, and is told. One line.
    pub fn sql(&mut self, database: &str, text: &str) -> String {
        self.tell(&format!("sql {database} {text}")).as_str().unwrap_or_default().to_owned()
    }

    pub fn text(&self, fact: &str) -> String {
        self.facts[fact].as_str().expect("a fact of every server").to_owned()
    }

    pub fn port(&self) -> u16 {
        self.facts["port"].as_u64().expect("a fact of every server") as u16
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
