//! The playground: the simulated GPU answers as the program does, and the page works in a real browser.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use results::wire::RunLine;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::common::{Ran, vk_litmus};
use crate::docs::root;
use crate::reports::chromium;

#[test]
fn the_simulated_gpu_answers_as_run_does() {
    let folder = tempdir().unwrap();
    for (id, fault) in [
        ("mp/MP+rel-acq", None),
        ("mp/MP+rel-acq", Some("release-does-not-drain-stores")),
        ("sb/SB+rlx-rlx", None),
    ] {
        let found = litmus::corpus::tests().into_iter().find(|test| test.id == id).unwrap();
        let mut command = vk_litmus(["run", id, "--device", "sim", "--instances", "4000", "--seed", "3"]);
        command.args(["--format", "json", "-q", "--out", "out"]).current_dir(folder.path());
        let ran = Ran::of(command.args(fault.iter().flat_map(|fault| ["--fault", *fault])));
        let program: RunLine = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
        let request = json!({
            "request": "simulate", "question": {"text": found.text}, "fault": fault, "instances": 4000, "seed": 3,
        });
        let page: Value = serde_json::from_str(&web::answer(&request.to_string())).unwrap();
        let page: RunLine = serde_json::from_value(page["line"].clone()).unwrap();
        assert_eq!((&page.outcomes, page.verdict), (&program.outcomes, program.verdict), "{id} {fault:?}");
        fs::remove_dir_all(folder.path().join("out")).unwrap();
    }
}

/// Drives the page in a frame of a phone's width, and sends what it saw to the server of this test.
const DRIVER: &str = include_str!("playground/driver.html");

/// The server of a test: the files of a folder below `/sub`, the driver, texts of tests, and its result.
struct Server {
    folder: PathBuf,
    tests: Vec<(&'static str, String)>,
}

impl Server {
    /// Answers a request; returns the result if the request brings it.
    fn answer(&self, stream: TcpStream) -> std::io::Result<Option<Value>> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let path =
            line.split_whitespace().nth(1).unwrap_or("/").split(['?', '#']).next().unwrap_or("/").to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let found = match path.as_str() {
            "/" => Some((DRIVER.as_bytes().to_vec(), "text/html")),
            // Browsers ask for it themselves.
            "/favicon.ico" => Some((Vec::new(), "image/x-icon")),
            "/result" => Some((Vec::new(), "text/plain")),
            path => match path.strip_prefix("/tests/") {
                Some(name) => {
                    let test = self.tests.iter().find(|(known, _)| *known == name);
                    test.map(|(_, text)| (text.clone().into_bytes(), "text/plain"))
                }
                None => path.strip_prefix("/sub/").and_then(|file| {
                    let media = match Path::new(file).extension()?.to_str()? {
                        "html" => "text/html",
                        "js" => "text/javascript",
                        "css" => "text/css",
                        "svg" => "image/svg+xml",
                        "wasm" => "application/wasm",
                        _ => "application/json",
                    };
                    Some((fs::read(self.folder.join(file)).ok()?, media))
                }),
            },
        };
        let mut stream = stream;
        let (status, (content, media)) = match found {
            Some(found) => ("200 OK", found),
            None => ("404 Not Found", (Vec::new(), "text/plain")),
        };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {media}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            content.len()
        )?;
        stream.write_all(&content)?;
        Ok((path == "/result").then(|| serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }
}

/// Returns the module that `ci/wasm` built.
fn module() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let module = target.join("wasm/playground.wasm");
    if module.is_file() {
        return Some(module);
    }
    println!("1 skipped: the playground is not built (ci/wasm)");
    None
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = chromium() else { return };
    let Some(module) = module() else { return };
    let (site, profile) = (tempdir().unwrap(), tempdir().unwrap());
    for entry in fs::read_dir(root().join("harness/web/page")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, site.path().join(path.file_name().unwrap())).unwrap();
    }
    fs::copy(module, site.path().join("playground.wasm")).unwrap();
    fs::write(
        site.path().join("patterns.json"),
        Ran::of(&mut vk_litmus(["patterns", "--format", "json"])).stdout,
    )
    .unwrap();
    let text =
        |id: &str| litmus::corpus::tests().into_iter().find(|test| test.id == id).unwrap().text.to_owned();
    let store_buffering = text("sb/SB+rlx-rlx");
    let server = Server {
        folder: site.path().to_owned(),
        tests: vec![
            ("wrong", store_buffering.replacen("st.atom", "st.atmo", 1)),
            ("store-buffering", store_buffering),
        ],
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap();
    let address = format!("http://{own}/");
    let mut page = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
        ])
        .args(["--disable-background-networking", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("--remote-debugging-port=0")
        .arg(&address)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let errors = page.stderr.take().unwrap();
    let errors = std::thread::spawn(move || {
        let lines = BufReader::new(errors).lines().map_while(Result::ok);
        let errors = lines.filter(|line| line.contains(":CONSOLE")).collect::<Vec<_>>();
        // A browser that ends by itself brings no result: this one ends the wait.
        if let Ok(mut stream) = TcpStream::connect(own) {
            let result = json!({"error": "the browser ended"}).to_string();
            let _ =
                write!(stream, "POST /result HTTP/1.1\r\nContent-Length: {}\r\n\r\n{result}", result.len());
        }
        errors
    });
    let result =
        listener.incoming().find_map(|stream| server.answer(stream.unwrap()).ok().flatten()).unwrap();
    page.kill().unwrap();
    page.wait().unwrap();
    let errors = errors.join().unwrap();

    println!("{result:#}");
    assert_eq!(result["error"], Value::Null, "{errors:#?}");
    assert_eq!(errors, Vec::<String>::new());
    assert!(result["widest"].as_f64().unwrap() <= 0.0, "the page is wider than 400 pixels: {result}");
    assert!(result["mistake"].as_str().unwrap().contains(".atmo"), "{result}");
    let outcomes = result["outcomes"].as_array().unwrap();
    let weak = outcomes.iter().filter(|row| row.as_str().unwrap().contains("weak")).count();
    assert_eq!((outcomes.len(), weak), (4, 1), "{result}");
    assert_eq!(result["linked"], result["outcomes"]);
    assert!(result["headline"].as_str().unwrap().ends_with("is allowed"), "{result}");
    assert!(result["broken"].as_str().unwrap().contains("damaged"), "{result}");
    assert!(result["large"].as_str().unwrap().contains("larger than 1024 KiB"), "{result}");
    assert!(result["gallery"].as_u64().unwrap() > 3, "{result}");
}
