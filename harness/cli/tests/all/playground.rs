//! The playground: its answers equal those of the program, and the page works in headless Chromium.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
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
        let ran = Ran::run(command.args(fault.iter().flat_map(|fault| ["--fault", *fault])));
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

/// Returns the shaders of the tests, without slow ones, and those of the cases if available.
fn shaders(extension: &str) -> Vec<PathBuf> {
    let shaders_folder = root().join("harness/cli/tests/all/shaders");
    let cases =
        std::env::var_os("VK_LITMUS_CORPORA").map(|corpora| PathBuf::from(corpora).join("../cases/shaders"));
    let folders = std::iter::once(shaders_folder).chain(cases.filter(|folder| folder.is_dir()));
    let files = folders.flat_map(|folder| walkdir::WalkDir::new(folder).sort_by_file_name());
    let files =
        files.map(|entry| entry.unwrap().into_path()).filter(|file| !file.iter().any(|name| name == "slow"));
    files.filter(|file| file.extension().is_some_and(|own| own == extension)).collect()
}

/// Compares the lines of `race` for some files with those of the playground. Returns the number of files.
fn compare_races(files: &[PathBuf], language: &str) -> usize {
    let names: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let mut command = vk_litmus(["race", "--format", "json", "-q", "--jobs", "2", "--timeout", "60s"]);
    let program = Ran::run(command.args(&names)).json_lines();
    let mut compared = 0;
    for name in names {
        let text = fs::read_to_string(name).unwrap();
        let request = json!({"request": "races", "text": text, "language": language});
        let page: Value = serde_json::from_str(&web::answer(&request.to_string())).unwrap();
        let program: Vec<&Value> = program.iter().filter(|line| line["file"] == name).collect();
        let Some(page) = page["lines"].as_array() else {
            // Both compilers reject it.
            assert_eq!(program[0]["cause"], "does not compile", "{name}: {page}");
            continue;
        };
        let file_name = if language == "wgsl" { "shader.wgsl" } else { "shader.spvasm" };
        let comparable = |line: &Value, file: &str| {
            let mut line = line.clone();
            line.as_object_mut().unwrap().remove("compiler");
            line.to_string().replace(file, "FILE")
        };
        let page: Vec<String> = page.iter().map(|line| comparable(line, file_name)).collect();
        let program: Vec<String> = program.iter().map(|line| comparable(line, name)).collect();
        assert_eq!(page, program, "{name}");
        compared += 1;
    }
    compared
}

#[test]
fn races_are_those_of_the_program() {
    let spirv = shaders("spvasm").into_iter().step_by(8).collect::<Vec<_>>();
    assert!(compare_races(&spirv, "spirv") > 5);
    let library = shader_source::wgsl::COMPILER.split(' ').nth(1).unwrap();
    let installed = Command::new("naga").arg("--version").output();
    match installed.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()) {
        Ok(version) if version == library => {
            let wgsl = shaders("wgsl").into_iter().step_by(8).collect::<Vec<_>>();
            assert!(compare_races(&wgsl, "wgsl") > 3);
        }
        Ok(version) => println!("1 skipped: naga {version} is installed, and the page has {library}"),
        Err(_) => println!("1 skipped: naga is not installed"),
    }
}

/// Returns the report of a results folder as JSON.
fn report_of(folder: &std::path::Path) -> String {
    let ran = Ran::run(vk_litmus(["report", "--format", "json"]).arg(folder));
    assert_eq!(ran.stderr, "", "{}", ran.stdout);
    ran.stdout
}

#[test]
fn report_reads_results_saved_in_a_browser() {
    let text = litmus::corpus::tests().into_iter().find(|test| test.id == "sb/SB+rlx-rlx").unwrap().text;
    let outcome =
        |left: u32, right: u32, count: u64| json!({"state": {"P0:r0": left, "P1:r0": right}, "count": count});
    let record = |not_executed: u64| {
        let run = json!({
            "adapter": "Example GPU", "browser": "Example/1.0", "system": "Linux", "processors": 4,
            "started": "2026-01-02T03:04:05Z", "milliseconds": 1500, "seed": 7, "dispatches": 2, "kernel": "fn test() {}",
            "not_executed": not_executed, "outcomes": [outcome(0, 1, 900), outcome(1, 0, 100), outcome(0, 0, 200)],
        });
        let request = json!({"request": "record", "question": {"text": text}, "run": run});
        let answer: Value = serde_json::from_str(&web::answer(&request.to_string())).unwrap();
        let folder = tempdir().unwrap();
        for file in answer["files"].as_array().unwrap_or_else(|| panic!("{answer}")) {
            fs::write(folder.path().join(file["name"].as_str().unwrap()), file["text"].as_str().unwrap())
                .unwrap();
        }
        folder
    };
    let folder = record(0);
    let report = report_of(folder.path());
    for words in ["Example GPU", "Example/1.0", "SB+rlx-rlx", "conforms"] {
        assert!(report.contains(words), "{words}: {report}");
    }
    let partial = report_of(record(3).path());
    assert!(partial.contains("inconclusive") && !partial.contains("conforms"), "{partial}");

    // A changed count is detected, as in other folders.
    let journal = folder.path().join("run.jsonl");
    let line = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, line.replacen("900", "901", 1)).unwrap();
    let changed = Ran::run(vk_litmus(["report", "--format", "json"]).arg(folder.path()));
    assert!(changed.messages().contains("the record was changed"), "{}", changed.stderr);
}

/// Returns a test whose outcomes cannot be enumerated within the limit on steps: six threads with six atomic
/// accesses each.
fn exploding_test() -> String {
    let row = |cell: &dyn Fn(usize) -> String| (0..6).map(cell).collect::<Vec<_>>().join(" | ") + " ;\n";
    let mut text = format!(
        "VULKAN Exploding\n{{ x = 0; y = 0; z = 0; }}\n{}",
        row(&|thread| format!("P{thread}@sg 0, wg {thread}, qf 0"))
    );
    for at in 0..6 {
        text += &row(&|thread| match (thread + at) % 2 {
            0 => format!("st.atom.dv.sc0 {}, {}", ["x", "y", "z"][(thread + at) % 3], thread * 6 + at + 1),
            _ => format!("ld.atom.dv.sc0 r{at}, {}", ["x", "y", "z"][(thread * 2 + at) % 3]),
        });
    }
    text + "exists (x == 1)\n"
}

/// Drives the page in a frame with the width of a phone, and sends the results to the server of this test.
const DRIVER: &str = include_str!("playground/driver.html");

/// The server of a test: the page with its module below `/sub` and with a server below `/served`, the driver,
/// texts of tests, and the result.
struct Server {
    module: Option<Vec<u8>>,
    patterns: String,
    axe: Option<Vec<u8>>,
    tests: Vec<(&'static str, String)>,
}

impl Server {
    /// Answers a request; returns the result if the request contains it.
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<Option<Value>> {
        let request = serve::read_request(&mut stream).map_err(std::io::Error::other)?;
        let found = self.file(&request.path, &String::from_utf8_lossy(&request.body));
        let (status, (content, media)) = match found {
            Some(found) => ("200 OK", found),
            None => ("404 Not Found", (Vec::new(), "text/plain")),
        };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            content.len()
        )?;
        stream.write_all(&content)?;
        let is_result = request.path == "/result";
        Ok(is_result.then(|| serde_json::from_slice(&request.body).unwrap_or(Value::Null)))
    }

    fn file(&self, path: &str, body: &str) -> Option<(Vec<u8>, &'static str)> {
        let json = |value: &Value| Some((value.to_string().into_bytes(), "application/json"));
        match path {
            "/" => return Some((DRIVER.as_bytes().to_vec(), "text/html")),
            // Browsers request it.
            "/favicon.ico" => return Some((Vec::new(), "image/x-icon")),
            "/result" => return Some((Vec::new(), "text/plain")),
            "/axe.js" => return self.axe.clone().map(|axe| (axe, "text/javascript")),
            "/sites" => {
                let first = if self.module.is_some() { "/sub/" } else { "/served/" };
                return json(&json!({"first": first, "axe": self.axe.is_some()}));
            }
            "/served/site.json" => return json(&json!({"server": true})),
            // The page in a browser without WebAssembly.
            "/bare/index.html" => {
                let page = web::PAGE_FILES.iter().find(|file| file.name == "index.html")?;
                let script = "<script src=\"without.js\"></script>\n<script type=";
                let page = String::from_utf8_lossy(page.bytes).replacen("<script type=", script, 1);
                return Some((page.into_bytes(), "text/html"));
            }
            "/bare/without.js" => return Some((b"delete window.WebAssembly;".to_vec(), "text/javascript")),
            "/bare/site.json" => return json(&json!({})),
            "/sub/site.json" => return json(&json!({})),
            "/sub/playground.wasm" => return self.module.clone().map(|module| (module, "application/wasm")),
            "/served/answer" => return Some((web::answer(body).into_bytes(), "application/json")),
            _ => {}
        }
        if let Some(name) = path.strip_prefix("/tests/") {
            let (_, text) = self.tests.iter().find(|(known, _)| *known == name)?;
            return Some((text.clone().into_bytes(), "text/plain"));
        }
        let name = ["/sub/", "/served/", "/bare/"].into_iter().find_map(|site| path.strip_prefix(site))?;
        if name == "patterns.json" {
            return Some((self.patterns.clone().into_bytes(), "application/json"));
        }
        let file = web::PAGE_FILES.iter().find(|file| file.name == name)?;
        Some((file.bytes.to_vec(), file.media))
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

/// Returns axe-core, which `ci/setup` installs.
fn axe() -> Option<Vec<u8>> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    let axe = fs::read(cache.join("vk-litmus/axe/node_modules/axe-core/axe.min.js")).ok();
    if axe.is_none() {
        println!("1 skipped: axe-core is not installed (ci/setup): the page's accessibility");
    }
    axe
}

/// A browser with a new profile, and the messages on its console.
struct Browser {
    process: std::process::Child,
    messages: std::thread::JoinHandle<Vec<String>>,
    /// The folder of the profile, which must outlive the browser.
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens a page of the server at the address `server`.
    fn open(program: &Path, server: SocketAddr, page: &str) -> Browser {
        let profile = tempdir().unwrap();
        let mut process = Command::new(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                // SwiftShader, for WebGPU.
                "--enable-unsafe-webgpu",
                "--use-webgpu-adapter=swiftshader",
                "--enable-features=Vulkan",
                "--no-first-run",
                "--disable-dev-shm-usage",
            ])
            .args(["--disable-background-networking", "--enable-logging=stderr"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("--remote-debugging-port=0")
            .arg(format!("http://{server}/{page}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = process.stderr.take().unwrap();
        let messages = std::thread::spawn(move || {
            let lines = BufReader::new(errors).lines().map_while(Result::ok);
            let messages = lines.filter(|line| line.contains(":CONSOLE")).collect();
            // If the browser exits early there is no result, and this connection ends the wait.
            if let Ok(mut stream) = TcpStream::connect(server) {
                let result = json!({"error": "the browser ended"}).to_string();
                let length = result.len();
                let _ = write!(stream, "POST /result HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{result}");
                // The client may have left already.
                let _ = stream.read_to_end(&mut Vec::new());
            }
            messages
        });
        Browser { process, messages, _profile: profile }
    }

    /// Ends the browser and returns its console messages.
    fn close(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.messages.join().unwrap()
    }
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = chromium() else { return };
    let text =
        |id: &str| litmus::corpus::tests().into_iter().find(|test| test.id == id).unwrap().text.to_owned();
    let store_buffering = text("sb/SB+rlx-rlx");
    let server = Server {
        module: module().map(|module| fs::read(module).unwrap()),
        patterns: Ran::run(&mut vk_litmus(["patterns", "--format", "json"])).stdout,
        axe: axe(),
        tests: vec![
            ("wrong", store_buffering.replacen("st.atom", "st.atmo", 1)),
            ("store-buffering", store_buffering),
            ("exploding", exploding_test()),
        ],
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, results) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // Browsers open connections in advance.
        std::thread::scope(|scope| {
            for stream in listener.incoming().map_while(Result::ok) {
                let (server, sender) = (&server, sender.clone());
                scope.spawn(move || {
                    if let Ok(Some(result)) = server.answer(stream) {
                        sender.send(result).unwrap();
                    }
                });
            }
        });
    });
    let page = Browser::open(&browser, address, "");
    let mut result = results.recv().unwrap();
    let errors = page.close();
    // The end of the browser also ends this wait.
    results.recv().unwrap();
    // The link in a new profile.
    let link = result["link"].as_str().unwrap_or_default();
    let page = Browser::open(&browser, address, link);
    let linked = results.recv().unwrap();
    assert_eq!((&linked["rows"], page.close()), (&result["outcomes"], Vec::new()), "{linked}");

    let archive: Option<Vec<u8>> =
        result.as_object_mut().unwrap().remove("archive").map(|bytes| serde_json::from_value(bytes).unwrap());
    println!("{result:#}");
    assert_eq!(result["error"], Value::Null, "{errors:#?}");
    assert_eq!(errors, Vec::<String>::new());
    assert!(result["widest"].as_f64().unwrap() <= 0.0, "the page is wider than 400 pixels: {result}");
    assert!(result["mistake"].as_str().unwrap().contains(".atmo"), "{result}");
    assert_eq!(result["underlined"], "atmo");
    assert!(result["colours"].as_u64().unwrap() >= 4, "{result}");
    assert!(result["corrected"].as_str().unwrap().contains("st.atom"), "{result}");
    assert!(result["meaning"].as_str().unwrap().starts_with("atom: an atomic access"), "{result}");
    let parts = ["memory order", "memory scope", "strength", "storage class of the location, everywhere"];
    assert_eq!(result["parts"], json!(parts));
    assert_eq!(result["ownModel"], 1, "{result}");
    assert!(result["catMistake"].as_str().unwrap().contains("nonsense"), "{result}");
    let outcomes = result["outcomes"].as_array().unwrap();
    let weak = outcomes.iter().filter(|row| row.as_str().unwrap().contains("weak")).count();
    assert_eq!((outcomes.len(), weak), (4, 1), "{result}");
    assert!(result["headline"].as_str().unwrap().ends_with("is allowed"), "{result}");
    let steps = result["executions"].as_array().unwrap();
    assert!(
        steps[0] == "Explanation" && steps[1].as_str().unwrap().starts_with("Execution 1 of 1"),
        "{result}"
    );
    assert_eq!(result["files"], json!(["execution.svg", "execution.png"]));
    let issue = result["issue"].as_str().unwrap();
    for words in
        ["under the model `vulkan`", "| 0 | 0 | allowed | weak |", "Command: `vk-litmus check test.litmus`"]
    {
        assert!(issue.contains(words), "{words}: {issue}");
    }
    assert!(!issue.contains("127.0.0.1"), "{issue}");
    assert!(result["broken"].as_str().unwrap().contains("damaged"), "{result}");
    assert!(result["large"].as_str().unwrap().contains("larger than 1024 KiB"), "{result}");
    assert_eq!(result["kept"], 10 << 20, "{result}");
    assert!(result["exploding"].as_str().unwrap().contains("not complete"), "{result}");
    assert!(result["noGpu"].as_str().unwrap().contains("no WebGPU"), "{result}");
    assert!(result["noModule"].as_str().unwrap().contains("lacks WebAssembly"), "{result}");
    assert!(result["gallery"].as_u64().unwrap() > 3, "{result}");
    assert_eq!(result["differ"], 1, "{result}");
    assert!(result["compared"].as_str().unwrap().starts_with("1 of 4 outcomes differ"), "{result}");
    assert_eq!(result["tour"].as_array().unwrap().len(), 10, "{result}");
    let race = result["race"].as_str().unwrap();
    assert!(race.contains("by invocation") && race.contains("write") && race.contains("read"), "{race}");
    let (second, last) = (result["secondStep"].as_str().unwrap(), result["lastStep"].as_str().unwrap());
    assert!(second.contains("Step 2 of") && last.contains("has seen everything of"), "{result}");
    assert!(!last.contains("Each invocation reads"), "a step of the compiler on line 1: {last}");
    assert!(last.contains("writes tile[") && last.contains("reads tile["), "{last}");
    assert_eq!((&result["marked"], &result["added"]), (&json!(2), &json!("+     workgroupBarrier();\n")));
    assert!(result["fixed"].as_str().unwrap().starts_with("No finding"), "{result}");
    assert_eq!(result["embedded"], json!([true, true, true]));
    assert!(result["wgsl"].as_str().unwrap().starts_with("1:"), "{result}");
    // A verdict about a device needs a complete answer, and every instance executed.
    let inconclusive = "inconclusive";
    let expected = [
        "only allowed outcomes",
        "violates vulkan (forbidden outcomes",
        inconclusive,
        inconclusive,
        inconclusive,
        "undefined",
    ];
    assert_eq!(result["verdicts"], json!(expected));
    let gpu = result["gpu"].as_str().unwrap();
    assert!(result["mapping"].as_str().unwrap().contains("queue-family scope"), "{result}");
    if gpu.contains("no GPU adapter") || gpu.contains("no WebGPU") {
        println!("1 skipped: this browser has no adapter of WebGPU: {gpu}");
    } else {
        assert!(
            gpu.starts_with("16,384 instances on ") && gpu.ends_with(": only allowed outcomes"),
            "{result}"
        );
        let folder = tempdir().unwrap();
        fs::write(folder.path().join("results.tar"), archive.unwrap()).unwrap();
        let unpacked = Command::new("tar").args(["-xf", "results.tar"]).current_dir(folder.path()).status();
        assert!(unpacked.unwrap().success());
        let report = report_of(&folder.path().join("vk-litmus-webgpu"));
        assert!(report.contains("SB+rlx-rlx") && report.contains("Chrome"), "{report}");
        assert!(!result["counted"].as_array().unwrap().is_empty(), "{result}");
    }
    assert_eq!((&result["dark"], &result["foreign"]), (&json!(true), &json!([])));
    for inspected in ["tests", "menu", "shaders", "darkness"] {
        assert!(result[inspected].as_array().is_none_or(|found| found.is_empty()), "{}", result[inspected]);
    }
}
