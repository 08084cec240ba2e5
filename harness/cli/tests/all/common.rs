//! Runs the binary: `VK_LITMUS_BINARY` if set (an installed one), else the one that cargo built.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Path of the binary.
pub fn binary() -> PathBuf {
    match std::env::var_os("VK_LITMUS_BINARY") {
        Some(path) => path.into(),
        None => env!("CARGO_BIN_EXE_vk-litmus").into(),
    }
}

/// Returns a command that runs the binary without the environment variables that change its output.
pub fn vk_litmus<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).env_remove("RUST_LOG").env_remove("RUST_BACKTRACE").env("NO_COLOR", "1");
    // The CI job that runs this test may be sharded.
    for variable in SHARD_VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// Variables that select a shard of the tests.
pub const SHARD_VARIABLES: [&str; 6] = [
    "VK_LITMUS_SHARD",
    "GTEST_SHARD_INDEX",
    "JOB_COMPLETION_INDEX",
    "SLURM_ARRAY_TASK_ID",
    "CI_NODE_INDEX",
    "DEQP_RUNNER_THREAD",
];

/// The output of a command and its exit code.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Exit code; -1 for a signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ran {
    /// Runs a command to completion.
    pub fn run(command: &mut Command) -> Ran {
        let output = command.output().unwrap();
        Ran::from(output)
    }

    /// Parses the lines of standard output as JSON.
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns both outputs as [`Ran::messages`] returns standard error.
    pub fn words(&self) -> String {
        join_words(&format!("{} {}", self.stdout, self.stderr))
    }

    /// Returns standard error as words between single spaces: the length of paths decides where a message is broken.
    pub fn messages(&self) -> String {
        join_words(&self.stderr)
    }
}

/// Joins the words of a text by single spaces, without the marks of messages.
fn join_words(text: &str) -> String {
    text.split_whitespace().filter(|word| !["│", "×"].contains(word)).collect::<Vec<_>>().join(" ")
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Returns true if a program is installed; otherwise prints a counted skip.
pub fn installed(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        println!("1 skipped: {program} is not installed");
    }
    there
}

/// Returns the selectors of the installed software drivers; prints a counted skip for each missing one.
pub fn software_drivers() -> Vec<&'static str> {
    let listed = Ran::run(&mut vk_litmus(["devices", "--format", "json"]));
    let names: Vec<String> = serde_json::from_str::<Vec<serde_json::Value>>(&listed.stdout)
        .unwrap_or_default()
        .iter()
        .filter_map(|device| Some(device["identity"]["name"].as_str()?.to_owned()))
        .collect();
    ["lavapipe", "swiftshader"]
        .into_iter()
        .filter(|driver| {
            let there = names.iter().any(|name| name == driver);
            if !there {
                println!("1 skipped: {driver} is not installed");
            }
            there
        })
        .collect()
}

/// Validates a value against a schema file.
#[track_caller]
pub fn assert_valid(schema: &std::path::Path, value: &serde_json::Value) {
    let text = std::fs::read_to_string(schema).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{value:#}\n{errors:#?}");
}

/// Returns the schema with this name in this repository, and the one in the contract if available.
pub fn schemas(name: &str, contract: &str) -> Vec<PathBuf> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("../../results/schema").join(name)];
    let contract_schema = std::env::var_os("VK_LITMUS_CORPORA")
        .and_then(|corpora| Some(std::path::Path::new(&corpora).parent()?.join("contract").join(contract)))
        // The contract has version 1 of this record.
        .filter(|path| path.is_file() && name != "race.schema.json");
    match contract_schema {
        Some(path) => found.push(path),
        None => println!("1 skipped: VK_LITMUS_CORPORA has no contract beside it"),
    }
    found
}

/// Folder of the validation layers in Debian's package.
const VALIDATION: &str = "/usr/share/vulkan/explicit_layer.d";

/// A folder with a layer of `ci/layer`, optionally below the validation layers.
pub struct Layer {
    folder: tempfile::TempDir,
    name: &'static str,
}

impl Layer {
    /// Builds the layer; without a compiler, prints a skip and returns `None`.
    pub fn build_layer(name: &'static str) -> Option<Layer> {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/layer");
        let built = Command::new("cc")
            .args([
                "-std=c11",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fPIC",
                "-shared",
                "-fvisibility=hidden",
            ])
            .arg("-o")
            .arg(folder.path().join(format!("lib{name}.so")))
            .arg(source.join(format!("{name}.c")))
            .arg("-lm")
            .output();
        let Ok(built) = built else {
            println!("1 skipped: cc is not installed, which builds the layer {name}");
            return None;
        };
        assert!(built.status.success(), "{built:?}");
        let manifest = format!("{name}.json");
        std::fs::copy(source.join(&manifest), folder.path().join(&manifest)).unwrap();
        Some(Layer { folder, name })
    }

    /// Builds the layer for use below the validation layers; prints a skip and returns `None` if the
    /// validation layers or a compiler are missing.
    pub fn build_below_validation(name: &'static str) -> Option<Layer> {
        if !Path::new(VALIDATION).is_dir() {
            println!("1 skipped: the validation layers are not in {VALIDATION}");
            return None;
        }
        Layer::build_layer(name)
    }

    /// The folder of the layer.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command with the layer and the validation layers above it.
    ///
    /// Old and new loaders read the order of layers from different variables. Layers that the program enables
    /// are below these.
    pub fn with_validation<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let paths = format!("{VALIDATION}:{}", self.folder().display());
        let layers = format!("VK_LAYER_KHRONOS_validation:VK_LAYER_LITMUS_{}", self.name);
        command.env("VK_LAYER_PATH", paths).env("VK_INSTANCE_LAYERS", layers)
    }
}

/// Returns the messages of the validation layers in a run with `--validate`.
pub fn validation_messages(ran: &Ran) -> Vec<&str> {
    ran.stderr.lines().filter(|line| line.starts_with("validation, ")).collect()
}
