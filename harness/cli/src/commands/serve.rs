//! `serve`: the playground for a browser on this machine, and the devices of the machine in it.
//!
//! Every answer comes from a child process of the program with a time limit, so that a too large test or a
//! crashing driver ends that process, never the server. Closing the connection, as the page's button for
//! stopping does, also ends the child process.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use ::serve::{QuestionHandler, ServedFile, Server};
use campaign::probe::FoundDevice;
use campaign::shader::source::{FileDirective, find_file_directive, find_program};
use campaign::temporary::TemporaryFolder;
use lsp::child::{ChildCommand, ChildError, ChildLimit, ChildOutput, run_child};
use model::Model;
use rand::Rng;
use results::wire::{
    PATTERNS_SCHEMA, PatternsRecord, PlaygroundAnswer, PlaygroundLanguage, PlaygroundName,
    PlaygroundQuestion, PlaygroundRequest, PlaygroundShader, RaceLine, RaceVerdict, RejectedLine, RunLine,
};

use crate::arguments::Serve;
use crate::exit::{Failure, Outcome};
use crate::output::{print_message, print_text};
use crate::patterns;

/// Largest number of instances in a run on a device.
const MAX_INSTANCES: u64 = 10_000_000;

/// Runs the command.
///
/// # Errors
/// Returns an error if the port is not free, or the listener fails.
pub fn serve(arguments: &Serve, quiet: bool) -> Result<Outcome, Failure> {
    if arguments.answer {
        return answer_standard_input();
    }
    let program = std::env::current_exe().map_err(Failure::environment_error)?;
    let mut token = [0; 16];
    rand::rng().fill_bytes(&mut token);
    let token = token.iter().map(|byte| format!("{byte:02x}")).collect();
    let port = arguments.port.unwrap_or(0);
    let server = Server::bind(port, token).map_err(|error| {
        Failure::environment_message(format!(
            "port {port} of 127.0.0.1: {error}; choose another with `--port N`"
        ))
    })?;
    let files = served_files()?;
    print_text(&format!("{}\n", server.url()))?;
    if !quiet {
        print_message("Open this address in a browser on this machine; Ctrl-C ends the server.");
    }
    let handler = ChildAnswers { program, time_limit: arguments.timeout, slots: ChildLimit::default() };
    server.run(files, handler).map_err(Failure::environment_error)?;
    Ok(Outcome::Success)
}

/// Returns the files of the page and the data that a site has as files.
fn served_files() -> Result<Vec<ServedFile>, Failure> {
    let page = web::PAGE_FILES.iter().map(|file| ServedFile {
        name: Cow::Borrowed(file.name),
        media: Cow::Borrowed(file.media),
        bytes: Cow::Borrowed(file.bytes),
    });
    let data = |name: &'static str, json: String| ServedFile {
        name: Cow::Borrowed(name),
        media: Cow::Borrowed("application/json"),
        bytes: Cow::Owned(json.into_bytes()),
    };
    let patterns = patterns::load_patterns().map_err(Failure::environment_error)?;
    let patterns = PatternsRecord { schema: PATTERNS_SCHEMA.to_owned(), patterns };
    let patterns = serde_json::to_string(&patterns).map_err(Failure::environment_error)?;
    let site = r#"{"book":false,"devices":false,"server":true}"#.to_owned();
    Ok(page.chain([data("patterns.json", patterns), data("site.json", site)]).collect())
}

/// Answers a request from standard input: the child of a server.
fn answer_standard_input() -> Result<Outcome, Failure> {
    let mut request = String::new();
    std::io::stdin().read_to_string(&mut request).map_err(Failure::environment_error)?;
    print_text(&web::answer(&request))
}

/// Answers requests by child processes.
struct ChildAnswers {
    program: PathBuf,
    time_limit: Duration,
    slots: ChildLimit,
}

impl QuestionHandler for ChildAnswers {
    fn answer(&self, question: &str, is_gone: &dyn Fn() -> bool) -> String {
        let answered = match serde_json::from_str(question) {
            Ok(PlaygroundRequest::Devices {}) => self.devices(is_gone),
            Ok(PlaygroundRequest::Run { question, device, instances, seed }) => {
                let run = DeviceRun { question: &question, device: &device, instances, seed };
                self.run_on_device(&run, is_gone)
            }
            Ok(PlaygroundRequest::Races(shader))
                if matches!(shader.language, PlaygroundLanguage::Glsl | PlaygroundLanguage::Hlsl) =>
            {
                self.compile_and_find_races(&shader, is_gone)
            }
            // The child process also reports mistakes in the request.
            Ok(_) | Err(_) => match self.run_program(&["serve", "--answer"], question, is_gone) {
                Ok(output) if output.code == Some(0) => return output.stdout,
                Ok(output) => Err(error_message(&output)),
                Err(why) => Err(why),
            },
        };
        let answer = answered.unwrap_or_else(|error| PlaygroundAnswer::Rejected {
            mistakes: vec![RejectedLine { file: String::new(), error, line: 1, column: 1 }],
        });
        serde_json::to_string(&answer).unwrap_or_default()
    }
}

struct DeviceRun<'a> {
    question: &'a PlaygroundQuestion,
    device: &'a str,
    instances: u64,
    seed: u64,
}

impl ChildAnswers {
    fn devices(&self, is_gone: &dyn Fn() -> bool) -> Result<PlaygroundAnswer, String> {
        let output = self.run_program(&["devices", "--format", "json"], "", is_gone)?;
        let devices: Vec<FoundDevice> =
            serde_json::from_str(&output.stdout).map_err(|_| error_message(&output))?;
        let to_name = |device: FoundDevice| PlaygroundName {
            name: device.identity.name,
            description: device.identity.device_name,
        };
        Ok(PlaygroundAnswer::Devices { devices: devices.into_iter().map(to_name).collect() })
    }

    fn run_on_device(
        &self,
        run: &DeviceRun<'_>,
        is_gone: &dyn Fn() -> bool,
    ) -> Result<PlaygroundAnswer, String> {
        let DeviceRun { question, device, instances, seed } = run;
        if !(1..=MAX_INSTANCES).contains(instances) {
            return Err(format!("{instances} instances; expected 1 to {MAX_INSTANCES}"));
        }
        if question.cat.is_some() {
            return Err(
                "devices are judged by shipped models; choose one instead of your cat model".to_owned()
            );
        }
        // `--model` would take a path as well, and the page must not name files.
        if let Some(name) = question.model.as_deref().filter(|name| Model::shipped(name).is_none()) {
            return Err(format!("unknown model `{name}`; `catalogue` lists the models"));
        }
        let mut arguments = vec![
            "run".to_owned(),
            "-".to_owned(),
            format!("--device={device}"),
            format!("--instances={instances}"),
            format!("--seed={seed}"),
            "--format=json".to_owned(),
            "--quiet".to_owned(),
            "--out=results".to_owned(),
        ];
        arguments.extend(question.model.as_ref().map(|model| format!("--model={model}")));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = self.run_program(&arguments, &question.text, is_gone)?;
        let line: RunLine = output
            .stdout
            .lines()
            .next()
            .and_then(|line| serde_json::from_str(line).ok())
            .ok_or_else(|| error_message(&output))?;
        Ok(PlaygroundAnswer::Run { line: Box::new(line) })
    }

    /// Answers for a source that a compiler of this machine translates, as `race` does for a file.
    ///
    /// Compilers print lines of the files that they open, so a source may not name one. A statement of Slang
    /// can do so too; its compiler does not take part.
    fn compile_and_find_races(
        &self,
        shader: &PlaygroundShader,
        is_gone: &dyn Fn() -> bool,
    ) -> Result<PlaygroundAnswer, String> {
        let (file, compilers): (&str, &[&str]) = match shader.language {
            PlaygroundLanguage::Hlsl => ("shader.hlsl", &["glslangValidator", "glslang", "dxc"]),
            _ => ("shader.comp", &["glslangValidator", "glslang", "glslc"]),
        };
        if let Some(FileDirective { line, word }) = find_file_directive(&shader.text) {
            let error = format!("`#{word}` in the playground; expected a source that needs no other file");
            let mistake = RejectedLine { file: String::new(), error, line, column: 1 };
            return Ok(PlaygroundAnswer::Rejected { mistakes: vec![mistake] });
        }
        let folder = TemporaryFolder::create().map_err(|error| error.to_string())?;
        std::fs::write(folder.path().join(file), &shader.text).map_err(|error| error.to_string())?;
        let grid = shader.grid.map(|[x, y, z]| format!("--grid={x},{y},{z}"));
        let trace = shader.trace.as_ref().map(|asked| format!("--step={}", asked.finding + 1));
        let mut answered = Err(format!("no compiler installed; expected one of {}", compilers.join(", ")));
        for compiler in compilers.iter().filter(|program| find_program(program).is_some()) {
            let compiler = format!("--compiler={compiler}");
            let arguments = ["race", file, "--format=json", "--quiet", &compiler];
            let arguments: Vec<&str> =
                arguments.into_iter().chain(grid.as_deref()).chain(trace.as_deref()).collect();
            let output = self.run_program_in(&folder, &arguments, "", is_gone)?;
            let lines: Vec<RaceLine> =
                output.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            let is_compiled = lines.iter().any(|line| line.verdict != RaceVerdict::Refused);
            // The message of the preferred compiler stays if no other compiles the source.
            if is_compiled || answered.is_err() {
                answered = match lines.is_empty() {
                    true => Err(error_message(&output)),
                    false => Ok(web::races_answer(lines, file, &shader.text, BTreeMap::new())),
                };
            }
            if is_compiled {
                break;
            }
        }
        answered
    }

    /// Runs the program in an empty folder.
    fn run_program(
        &self,
        arguments: &[&str],
        input: &str,
        is_gone: &dyn Fn() -> bool,
    ) -> Result<ChildOutput, String> {
        let folder = TemporaryFolder::create().map_err(|error| error.to_string())?;
        self.run_program_in(&folder, arguments, input, is_gone)
    }

    fn run_program_in(
        &self,
        folder: &TemporaryFolder,
        arguments: &[&str],
        input: &str,
        is_gone: &dyn Fn() -> bool,
    ) -> Result<ChildOutput, String> {
        let command = ChildCommand {
            program: &self.program,
            arguments: arguments.iter().map(OsStr::new).collect(),
            folder: folder.path(),
            input,
            time_limit: self.time_limit,
        };
        run_child(&command, &self.slots, is_gone).map_err(|error| match error {
            ChildError::TimedOut(limit) => {
                format!(
                    "no answer within {} s: make the test smaller, or pass `--timeout` to `serve`",
                    limit.as_secs_f64()
                )
            }
            error @ (ChildError::Cancelled | ChildError::System(_)) => error.to_string(),
        })
    }
}

fn error_message(output: &ChildOutput) -> String {
    match (output.stderr.trim(), output.code) {
        ("", Some(code)) => format!("the analysis ended with exit code {code} and without an answer"),
        ("", None) => "the analysis was ended by the system, perhaps for lack of memory".to_owned(),
        (text, _) => text.to_owned(),
    }
}
