//! `serve`: only its page can send requests, every request has limits, and answers equal those of the
//! playground.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::common::{installed, vk_litmus};

/// A server; dropping it ends the process.
struct RunningServer {
    process: Child,
    /// The address, such as `127.0.0.1:8000`.
    host: String,
    /// The path of the page, with the token.
    path: String,
}

impl RunningServer {
    fn start(timeout: &str) -> RunningServer {
        let mut command = vk_litmus(["serve", "-q", "--timeout", timeout]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let (host, path) = url.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        RunningServer { process, host: host.to_owned(), path: format!("/{path}") }
    }

    /// Sends a request; returns the status and the body.
    fn send(&self, request: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let length = body.len();
        write!(stream, "{request}Content-Length: {length}\r\n\r\n{body}").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Content-Security-Policy: default-src 'none'"), "{head}");
        (head.split_whitespace().nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Returns the status and the body of a file.
    fn get(&self, path: &str) -> (u16, String) {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.host), "")
    }

    /// Sends a request with additional headers.
    fn post(&self, headers: &str, body: &str) -> (u16, String) {
        let RunningServer { host, path, .. } = self;
        let kind = "Content-Type: application/json\r\n";
        self.send(&format!("POST {path}answer HTTP/1.1\r\nHost: {host}\r\n{kind}{headers}"), body)
    }

    fn request_answer(&self, question: &Value) -> Value {
        let (status, body) = self.post("", &question.to_string());
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn corpus_text(id: &str) -> &'static str {
    litmus::corpus::tests().into_iter().find(|test| test.id == id).unwrap().text
}

#[test]
fn only_the_page_of_the_server_reaches_it() {
    let server = RunningServer::start("60s");
    let (status, page) = server.get(&server.path);
    assert_eq!((status, page.contains("vk-litmus playground")), (200, true));
    assert_eq!(server.get(&format!("{}main.js", server.path)).0, 200);
    assert_eq!(server.get(server.path.trim_end_matches('/')).0, 308);
    for wrong in ["/", "/answer", "/0123456789abcdef0123456789abcdef/", "/../", "//"] {
        assert_eq!(server.get(wrong).0, 404, "{wrong}");
    }
    assert_eq!(server.get(&format!("{}../Cargo.toml", server.path)).0, 404);

    let catalogue = r#"{"request":"catalogue"}"#;
    assert_eq!(server.post("", catalogue).0, 200);
    let own_origin = format!("Origin: http://{}\r\n", server.host);
    assert_eq!(server.post(&own_origin, catalogue).0, 200);
    for foreign in
        ["http://example.com", "null", "https://127.0.0.1", &format!("http://{}.example.com", server.host)]
    {
        let (status, body) = server.post(&format!("Origin: {foreign}\r\n"), catalogue);
        assert_eq!((status, body.as_str()), (403, "requests of other pages are refused\n"), "{foreign}");
    }
    // The name of a foreign host that resolves to this machine.
    let path = &server.path;
    assert_eq!(server.send(&format!("GET {path} HTTP/1.1\r\nHost: example.com\r\n"), "").0, 403);
    // A form on another page cannot send this content type.
    let form = format!("POST {path}answer HTTP/1.1\r\nHost: {}\r\nContent-Type: text/plain\r\n", server.host);
    assert_eq!(server.send(&form, catalogue).0, 415);
}

#[test]
fn requests_have_limits_and_the_server_survives() {
    let server = RunningServer::start("60s");
    let (status, why) = server.post("", &"x".repeat(2 << 20));
    assert_eq!((status, why.contains("shorten the text")), (413, true), "{why}");
    for wrong in ["", "{", "[]", r#"{"request":"none"}"#] {
        let (status, body) = server.post("", wrong);
        assert_eq!((status, body.contains("not a request of")), (200, true), "{wrong}: {body}");
    }
    drop(server);

    let server = RunningServer::start("1ms");
    // No machine runs a million instances between two polls of the child process.
    let question = json!({"text": corpus_text("mp/MP+rel-acq")});
    let answer = server.request_answer(
        &json!({"request": "simulate", "question": question, "instances": 1_000_000, "seed": 1}),
    );
    let error = answer["mistakes"][0]["error"].as_str().unwrap_or_default();
    assert!(error.starts_with("no answer within 0.001 s"), "{answer}");
    assert_eq!(server.get(&server.path).0, 200);
}

#[test]
fn answers_are_those_of_the_page_and_devices_run() {
    let server = RunningServer::start("60s");
    let text = corpus_text("mp/MP+rel-acq");
    let question = json!({"request": "check", "text": text});
    let expected: Value = serde_json::from_str(&web::answer(&question.to_string())).unwrap();
    assert_eq!(server.request_answer(&question), expected);
    assert_eq!(expected["answer"], "check");

    let run = |device: &str, model: Option<&str>| {
        let question = json!({"text": text, "model": model});
        server.request_answer(&json!({
            "request": "run", "question": question, "device": device, "instances": 2000, "seed": 1,
        }))
    };
    let answer = run("sim", None);
    assert_eq!(
        (&answer["answer"], &answer["line"]["verdict"]),
        (&json!("run"), &json!("conforms")),
        "{answer}"
    );
    let error = |answer: Value| answer["mistakes"][0]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error(run("no-such-device", None)).contains("no-such-device"));
    // Requests cannot name files.
    assert!(error(run("sim", Some("/etc/passwd"))).contains("unknown model"));
}

#[test]
fn compilers_of_the_machine_translate_glsl_and_hlsl() {
    if !installed("glslangValidator") {
        return;
    }
    let server = RunningServer::start("60s");
    for (language, text) in [
        (
            "glsl",
            "#version 450\nlayout(local_size_x = 64) in;\nlayout(binding = 0) buffer D { uint d[]; };\nshared uint t[64];\n\
             void main() {\n    uint i = gl_LocalInvocationID.x;\n    t[i] = i;\n    d[i] = t[63 - i];\n}\n",
        ),
        (
            "hlsl",
            "RWStructuredBuffer<uint> d : register(u0);\ngroupshared uint t[64];\n[numthreads(64, 1, 1)]\n\
             void main(uint i : SV_GroupIndex) {\n    t[i] = i;\n    d[i] = t[63 - i];\n}\n",
        ),
    ] {
        let answer = server.request_answer(&json!({"request": "races", "language": language, "text": text}));
        assert_eq!(answer["lines"][0]["verdict"], "racy", "{answer}");
        assert!(answer["fixes"][0]["text"].as_str().is_some_and(|fixed| fixed != text), "{answer}");
    }
    let wrong =
        server.request_answer(&json!({"request": "races", "language": "glsl", "text": "void main() { x }"}));
    assert_eq!(wrong["lines"][0]["verdict"], "refused", "{wrong}");
    assert!(wrong["lines"][0]["why"].as_str().is_some_and(|why| why.contains('x')), "{wrong}");
    // A message of a compiler would have lines of the other file.
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let text = format!("[numthreads(1, 1, 1)]\nvoid main() {{}}\n#inc\\\nlude \"{}\"\n", file.display());
    let opened = server.request_answer(&json!({"request": "races", "language": "hlsl", "text": text}));
    assert_eq!(opened["mistakes"][0]["line"], 3, "{opened}");
}
