//! The language server: each file of `lsp/` is a session of an editor, and a snapshot holds the answers.
//!
//! A line is a step; lines that begin with `|` are the text of the step before. Positions are `LINE:CHARACTER` from
//! 0, in UTF-16 code units. The steps:
//!
//! - `file NAME` writes a file; `repeat NAME N TEXT` writes one with N equal lines before its text;
//! - `compiler NAME SCRIPT` puts a shell script first on the path of the server;
//! - `start [OPTIONS]` starts the server, with initialization options as JSON;
//! - `open NAME`, `edit NAME FROM-TO TEXT` (TEXT as JSON), `save NAME`, `close NAME`;
//! - `diagnostics NAME [N]` waits for the N-th list of diagnostics of the current version, and prints it;
//! - `hover NAME AT`, `complete NAME AT WORD…` (which of the words are offered), `fixes NAME AT`, `lens NAME`,
//!   `format NAME`;
//! - `command COMMAND NAME` runs a command, `cancelled COMMAND NAME` cancels it at once;
//! - `request METHOD` sends a request without parameters; `stop` ends the session, `leave` closes the connection.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{installed, vk_litmus};

/// The time limit of each answer. Debug builds on busy machines are slow.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// An editor: a client over standard input and output.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    folder: tempfile::TempDir,
    /// Version and text of open documents.
    documents: BTreeMap<String, (i64, String)>,
    /// The lists of diagnostics that were published, oldest first.
    published: Vec<Value>,
    /// Messages that the server showed.
    shown: Vec<String>,
    requests: i64,
}

impl Editor {
    fn start(folder: tempfile::TempDir, options: &Value) -> Editor {
        let mut command = vk_litmus(["lsp"]);
        // Answers name the compilers that were tried, so installed ones are hidden.
        let tools = folder.path().join("tools");
        std::fs::create_dir(&tools).unwrap();
        for tool in ["sh", "sleep", "glslangValidator", "spirv-as", "spirv-val"] {
            let search = std::env::var_os("PATH").unwrap();
            let found =
                std::env::split_paths(&search).map(|folder| folder.join(tool)).find(|file| file.exists());
            if let Some(file) = found {
                std::os::unix::fs::symlink(file, tools.join(tool)).unwrap();
            }
        }
        let path = std::env::join_paths([folder.path().join("bin"), tools]).unwrap();
        command.env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (sender, messages) = channel();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            while let Some(message) = read_message(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let mut editor = Editor {
            child,
            input,
            messages,
            folder,
            documents: BTreeMap::new(),
            published: Vec::new(),
            shown: Vec::new(),
            requests: 0,
        };
        let capabilities = json!({ "workspace": { "codeLens": { "refreshSupport": true } } });
        let answer = editor.request(
            "initialize",
            &json!({ "capabilities": capabilities, "initializationOptions": options }),
        );
        assert_eq!(answer["result"]["capabilities"]["positionEncoding"], "utf-16");
        editor.notify("initialized", &json!({}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input.as_mut().unwrap(), "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    }

    fn notify(&mut self, method: &str, parameters: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters }));
    }

    fn start_request(&mut self, method: &str, parameters: &Value) -> i64 {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        id
    }

    fn request(&mut self, method: &str, parameters: &Value) -> Value {
        let id = self.start_request(method, parameters);
        self.answer(id)
    }

    fn answer(&mut self, id: i64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id && message["method"].is_null() {
                return message;
            }
        }
    }

    /// Receives a message and stores its diagnostics or text.
    fn receive(&mut self) -> Value {
        let message = self.messages.recv_timeout(ANSWER_TIMEOUT).unwrap();
        match message["method"].as_str() {
            Some("textDocument/publishDiagnostics") => self.published.push(message["params"].clone()),
            Some("window/showMessage") => {
                self.shown.push(message["params"]["message"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
        message
    }

    fn address(&self, name: &str) -> String {
        if name.starts_with("untitled:") {
            return name.to_owned();
        }
        format!("file://{}", self.folder.path().join(name).display())
    }

    fn document(&self, name: &str) -> Value {
        json!({ "uri": self.address(name) })
    }

    /// Waits for the `count`-th list of diagnostics of the current version.
    fn diagnostics(&mut self, name: &str, count: usize) -> Value {
        let address = self.address(name);
        let version = self.documents.get(name).map_or(Value::Null, |(version, _)| json!(version));
        loop {
            let lists = self.published.iter();
            let mut lists = lists.filter(|list| list["uri"] == address && list["version"] == version);
            if let Some(list) = lists.nth(count - 1) {
                return list["diagnostics"].clone();
            }
            self.receive();
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read_message(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        output.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", bytes)) => length = bytes.parse().ok()?,
            Some(_) => {}
            None if length > 0 => break,
            None => return None,
        }
    }
    let mut bytes = vec![0; length];
    output.read_exact(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn position(text: &str) -> Value {
    let (line, character) = text.split_once(':').unwrap();
    json!({ "line": line.parse::<u32>().unwrap(), "character": character.parse::<u32>().unwrap() })
}

/// Returns the byte offset of a position of an ASCII or UTF-8 text.
fn offset(text: &str, at: &Value) -> usize {
    let line = at["line"].as_u64().unwrap() as usize;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let mut units = 0;
    let content = text[start..].chars().take_while(|c| {
        units += c.len_utf16();
        units <= at["character"].as_u64().unwrap() as usize
    });
    start + content.map(char::len_utf8).sum::<usize>()
}

fn place(range: &Value) -> String {
    let at = |end: &str| format!("{}:{}", range[end]["line"], range[end]["character"]);
    format!("{}-{}", at("start"), at("end"))
}

/// Runs a session; returns the steps and their answers.
fn session(script: &str) -> String {
    let mut transcript = String::new();
    let mut folder = Some(tempfile::tempdir().unwrap());
    let mut editor: Option<Editor> = None;
    let mut lines = script.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut text = String::new();
        while let Some(content) = lines.next_if(|line| line.starts_with('|')) {
            text += content[1..].strip_prefix(' ').unwrap_or(&content[1..]);
            text.push('\n');
        }
        writeln!(transcript, "> {line}").unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let rest = |from: usize| words[from..].join(" ");
        if let Some(folder) = &folder {
            let path = folder.path();
            match words[0] {
                "file" => std::fs::write(path.join(words[1]), &text).unwrap(),
                "repeat" => {
                    let many = format!("{}\n", rest(3)).repeat(words[2].parse().unwrap());
                    std::fs::write(path.join(words[1]), many + &text).unwrap();
                }
                "compiler" => {
                    let program = path.join("bin").join(words[1]);
                    std::fs::create_dir_all(path.join("bin")).unwrap();
                    std::fs::write(&program, format!("#!/bin/sh\n{}\n", rest(2))).unwrap();
                    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
                }
                _ => {}
            }
        }
        if words[0] == "start" {
            let options = if words.len() > 1 { serde_json::from_str(&rest(1)).unwrap() } else { Value::Null };
            editor = folder.take().map(|folder| Editor::start(folder, &options));
        } else if let Some(editor) = &mut editor {
            let answer = step(editor, &words, &text);
            let folder = editor.folder.path().display().to_string();
            for line in answer.lines() {
                writeln!(transcript, "  {}", line.replace(&folder, "FOLDER")).unwrap();
            }
            for message in editor.shown.drain(..) {
                writeln!(transcript, "  shown: {message}").unwrap();
            }
        }
    }
    transcript
}

/// Executes a step with a running server; returns the answer.
fn step(editor: &mut Editor, words: &[&str], text: &str) -> String {
    let name = words.get(1).copied().unwrap_or_default();
    let mut answer = String::new();
    match words[0] {
        "open" => {
            let file = editor.folder.path().join(name);
            let text = if text.is_empty() { std::fs::read_to_string(file).unwrap() } else { text.to_owned() };
            editor.documents.insert(name.to_owned(), (1, text.clone()));
            let id = words.get(2).copied().unwrap_or("plaintext");
            let uri = editor.address(name);
            let document = json!({ "uri": uri, "languageId": id, "version": 1, "text": text });
            editor.notify("textDocument/didOpen", &json!({ "textDocument": document }));
        }
        "edit" => {
            let (from, to) = words[2].split_once('-').unwrap();
            let (from, to) = (position(from), position(to));
            let new: String = serde_json::from_str(&words[3..].join(" ")).unwrap();
            let (version, text) = editor.documents.get_mut(name).unwrap();
            *version += 1;
            let range = offset(text, &from)..offset(text, &to);
            text.replace_range(range, &new);
            let version = *version;
            let uri = editor.address(name);
            editor.notify(
                "textDocument/didChange",
                &json!({
                    "textDocument": { "uri": uri, "version": version },
                    "contentChanges": [{ "range": { "start": from, "end": to }, "text": new }],
                }),
            );
        }
        "save" => {
            let file = editor.folder.path().join(name);
            std::fs::write(file, &editor.documents[name].1).unwrap();
            let document = editor.document(name);
            editor.notify("textDocument/didSave", &json!({ "textDocument": document }));
        }
        "close" => {
            let document = editor.document(name);
            editor.documents.remove(name);
            editor.notify("textDocument/didClose", &json!({ "textDocument": document }));
        }
        "diagnostics" => {
            let count = words.get(2).map_or(1, |count| count.parse().unwrap());
            let list = editor.diagnostics(name, count);
            for found in list.as_array().unwrap() {
                let severity =
                    ["", "error", "warning", "information"][found["severity"].as_u64().unwrap() as usize];
                let message = found["message"].as_str().unwrap().replace('\n', "\n  ");
                let code = found["code"].as_str().unwrap();
                writeln!(answer, "{} {severity} {code}: {message}", place(&found["range"])).unwrap();
                for related in found["relatedInformation"].as_array().into_iter().flatten() {
                    let message = related["message"].as_str().unwrap();
                    writeln!(answer, "  {} {message}", place(&related["location"]["range"])).unwrap();
                }
            }
            if answer.is_empty() {
                answer += "none\n";
            }
        }
        "hover" | "complete" => {
            let parameters = json!({ "textDocument": editor.document(name), "position": position(words[2]) });
            if words[0] == "hover" {
                let found = editor.request("textDocument/hover", &parameters);
                answer += found["result"]["contents"]["value"].as_str().unwrap_or("nothing");
            } else {
                let found = editor.request("textDocument/completion", &parameters);
                let items = found["result"].as_array().unwrap();
                for word in &words[3..] {
                    let item = items.iter().find(|item| item["label"] == *word);
                    let item_text =
                        item.map(|item| (place(&item["textEdit"]["range"]), item["detail"].as_str()));
                    let item_text =
                        item_text.map(|(place, detail)| format!("{place} {}", detail.unwrap_or_default()));
                    writeln!(answer, "{word}: {}", item_text.as_deref().unwrap_or("not offered").trim_end())
                        .unwrap();
                }
            }
        }
        "fixes" => {
            let at = position(words[2]);
            let parameters = json!({
                "textDocument": editor.document(name),
                "range": { "start": at, "end": at },
                "context": { "diagnostics": [] },
            });
            let found = editor.request("textDocument/codeAction", &parameters);
            let address = editor.address(name);
            for action in found["result"].as_array().unwrap() {
                writeln!(answer, "{}", action["title"].as_str().unwrap()).unwrap();
                for edit in action["edit"]["changes"][&address].as_array().unwrap() {
                    writeln!(answer, "  {} {}", place(&edit["range"]), edit["newText"]).unwrap();
                }
            }
            if answer.is_empty() {
                answer += "none\n";
            }
        }
        "lens" => {
            let parameters = json!({ "textDocument": editor.document(name) });
            let found = editor.request("textDocument/codeLens", &parameters);
            for lens in found["result"].as_array().unwrap() {
                writeln!(answer, "{} {}", place(&lens["range"]), lens["command"]["title"].as_str().unwrap())
                    .unwrap();
            }
        }
        "format" => {
            let options = json!({ "tabSize": 4, "insertSpaces": true });
            let parameters = json!({ "textDocument": editor.document(name), "options": options });
            let found = editor.request("textDocument/formatting", &parameters);
            match found["result"].as_array() {
                Some(edits) => answer += edits[0]["newText"].as_str().unwrap(),
                None => answer += "unchanged\n",
            }
        }
        "command" | "cancelled" => {
            let arguments = json!([editor.address(words[2])]);
            let parameters = json!({ "command": name, "arguments": arguments });
            let id = editor.start_request("workspace/executeCommand", &parameters);
            if words[0] == "cancelled" {
                editor.notify("$/cancelRequest", &json!({ "id": id }));
            }
            let found = editor.answer(id);
            // The message with the verdict is sent after the answer.
            if found["error"].is_null() && editor.shown.is_empty() {
                editor.receive();
            }
            answer += &found.get("result").unwrap_or(&found["error"]).to_string();
        }
        "request" => {
            let found = editor.request(name, &json!({}));
            answer += &found["error"].to_string();
        }
        "stop" => {
            assert_eq!(editor.request("shutdown", &Value::Null)["result"], Value::Null);
            editor.notify("exit", &Value::Null);
            answer = format!("exit code {}", editor.child.wait().unwrap().code().unwrap_or(-1));
        }
        "leave" => {
            editor.input = None;
            answer = format!("exit code {}", editor.child.wait().unwrap().code().unwrap_or(-1));
        }
        other => assert_eq!(other, "one of the steps"),
    }
    answer
}

#[test]
fn sessions() {
    insta::glob!("lsp/*.session", |path| {
        let script = std::fs::read_to_string(path).unwrap();
        let needs = script.lines().find_map(|line| line.strip_prefix("# needs "));
        if needs.is_some_and(|program| !installed(program)) {
            return;
        }
        insta::assert_snapshot!(session(&script));
    });
}

#[test]
fn a_long_file_is_diagnosed_while_it_is_edited() {
    let mut editor = Editor::start(tempfile::tempdir().unwrap(), &Value::Null);
    let head = "VULKAN long\n".to_owned();
    let text = head
        + &"(* a comment *)\n".repeat(10_000)
        + "{ x = 0; }\nP0@sg 0, wg 0, qf 0 ;\nst.sc0 x, 1 ;\nexists (x == 1)\n";
    std::fs::write(editor.folder.path().join("long.litmus"), &text).unwrap();
    step(&mut editor, &["open", "long.litmus"], "");
    assert_eq!(editor.diagnostics("long.litmus", 1), json!([]));
    for (number, digit) in ["2", "3", "q"].into_iter().enumerate() {
        let edit = format!("\"{digit}\"");
        step(&mut editor, &["edit", "long.litmus", "10003:10-10003:11", &edit], "");
        if number == 2 {
            let found = editor.diagnostics("long.litmus", 1);
            assert_eq!(found[0]["range"]["start"]["line"], 10_003, "{found}");
        }
    }
    assert_eq!(step(&mut editor, &["stop"], ""), "exit code 0");
}
