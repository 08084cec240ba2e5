//! Requests to the playground's entry, and its answers that no command publishes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CheckLine, RaceLine, RejectedLine, RunLine};
use crate::state::State;

/// Version of [`PlaygroundRequest`] and [`PlaygroundAnswer`].
pub const PLAYGROUND_SCHEMA: &str = "vk-litmus/playground/1";

/// A request to the playground.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PlaygroundRequest {
    /// Lists models, tests and faults.
    Catalogue {},
    /// Returns the text of an embedded test.
    Test {
        /// Its id.
        id: String,
    },
    /// Returns the text of a shipped model.
    Model {
        /// Its name.
        name: String,
    },
    /// Lists the problems of a text.
    Problems(PlaygroundText),
    /// Lists the words that may stand at a cursor.
    Complete {
        /// The text.
        document: PlaygroundText,
        /// The cursor, in UTF-16 code units.
        offset: u32,
    },
    /// Returns the meaning of the word at a cursor.
    Meaning {
        /// The text.
        document: PlaygroundText,
        /// The cursor, in UTF-16 code units.
        offset: u32,
    },
    /// Lists variations of the instruction at a cursor in a litmus test.
    Vary {
        /// The text of the test.
        text: String,
        /// The cursor, in UTF-16 code units.
        offset: u32,
    },
    /// Predicts the outcomes of a test.
    Check(PlaygroundQuestion),
    /// Explains an outcome of a test.
    Explain {
        /// The test and the model.
        question: PlaygroundQuestion,
        /// The outcome as a condition; absent for the test's own question.
        #[serde(default)]
        outcome: Option<String>,
    },
    /// Lists consistent executions with an outcome.
    Executions {
        /// The test and the model.
        question: PlaygroundQuestion,
        /// The outcome as a condition; absent for the test's own question.
        #[serde(default)]
        outcome: Option<String>,
    },
    /// Runs a test on the simulated GPU and judges it.
    Simulate {
        /// The test and the model.
        question: PlaygroundQuestion,
        /// The injected fault by name; absent for a sound machine.
        #[serde(default)]
        fault: Option<String>,
        /// The number of instances.
        instances: u64,
        /// The seed of all random choices.
        seed: u64,
    },
    /// Finds races in a shader.
    Races(PlaygroundShader),
    /// Translates a test to a kernel of WGSL.
    Kernel(PlaygroundQuestion),
    /// Judges a run on the GPU of the browser and writes its results folder.
    Record {
        /// The test and the model.
        question: PlaygroundQuestion,
        /// The run.
        run: PlaygroundGpuRun,
    },
    /// Lists the devices of the machine; only `serve` has them.
    Devices {},
    /// Runs a test on a device of the machine and judges it; only `serve` does.
    Run {
        /// The test and the model.
        question: PlaygroundQuestion,
        /// The device, as `--device` names it.
        device: String,
        /// The number of instances.
        instances: u64,
        /// The seed of all random choices.
        seed: u64,
    },
}

/// A text in an editor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaygroundText {
    /// The language of the text.
    pub language: PlaygroundTextLanguage,
    /// The text.
    pub text: String,
}

/// A language that the editor knows words of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaygroundTextLanguage {
    /// A litmus test.
    Litmus,
    /// A model in cat.
    Cat,
}

/// A shader and its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaygroundShader {
    /// The text of the shader.
    pub text: String,
    /// The language of the text.
    pub language: PlaygroundLanguage,
    /// The number of workgroups in x, y and z; absent for a choice of the tool.
    #[serde(default)]
    pub grid: Option<[u32; 3]>,
    /// Values of pipeline-overridable constants by name or number, as decimal numbers.
    #[serde(default)]
    pub overrides: BTreeMap<String, String>,
    /// Limit on each phase of the analysis, in looks at its stop function; absent for the default.
    #[serde(default)]
    pub steps: Option<u64>,
    /// The finding whose steps the answer has; absent for none.
    #[serde(default)]
    pub trace: Option<PlaygroundFinding>,
}

/// A finding in an answer to [`PlaygroundRequest::Races`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaygroundFinding {
    /// The entry point.
    pub entry: String,
    /// The index of the finding in its line.
    pub finding: usize,
}

/// A language of shaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaygroundLanguage {
    /// WGSL.
    Wgsl,
    /// GLSL, a compute shader; only where a server has its compiler.
    Glsl,
    /// HLSL, a compute shader; only where a server has its compiler.
    Hlsl,
    /// SPIR-V as assembly text.
    Spirv,
}

/// A test, a model and a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaygroundQuestion {
    /// The text of the test.
    pub text: String,
    /// The name of a shipped model; absent for the default of the test's dialect.
    #[serde(default)]
    pub model: Option<String>,
    /// The text of a model in cat; it takes the place of `model`.
    #[serde(default)]
    pub cat: Option<String>,
    /// Limit on the steps of the model; absent for the default.
    #[serde(default)]
    pub steps: Option<u64>,
}

/// An answer of the playground.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum PlaygroundAnswer {
    /// The models, tests and faults.
    Catalogue(PlaygroundCatalogue),
    /// The text of an embedded test.
    Test {
        /// Its id.
        id: String,
        /// Its text.
        text: String,
    },
    /// The text of a shipped model.
    Model {
        /// Its name.
        name: String,
        /// Its text.
        text: String,
    },
    /// The problems of a text, in text order.
    Problems {
        /// The problems.
        problems: Vec<PlaygroundProblem>,
    },
    /// The words that may stand at the cursor.
    Completions {
        /// The start of the word at the cursor, in UTF-16 code units.
        from: u32,
        /// Its end.
        to: u32,
        /// The words that may replace it, with their meanings.
        words: Vec<PlaygroundName>,
    },
    /// The meaning of the word at the cursor.
    Meaning {
        /// The start of the word, in UTF-16 code units.
        from: u32,
        /// Its end.
        to: u32,
        /// Its meaning as Markdown; absent for a word without one.
        markdown: Option<String>,
    },
    /// Variations of the instruction at the cursor that are tests.
    Variations {
        /// The variations, by part.
        variations: Vec<PlaygroundVariation>,
    },
    /// The prediction, as `check --format json` prints it.
    Check {
        /// The prediction.
        line: Box<CheckLine>,
        /// Warnings about the text.
        warnings: Vec<PlaygroundWarning>,
    },
    /// An explanation.
    Explain(PlaygroundExplanation),
    /// Consistent executions with the outcome.
    Executions {
        /// The first executions.
        executions: Vec<PlaygroundExecution>,
        /// True if there are no more.
        complete: bool,
    },
    /// The verdict on the simulated GPU, as `run --format json` prints it.
    Simulate {
        /// The verdict.
        line: Box<RunLine>,
    },
    /// The findings of a shader.
    Races {
        /// The answer for each entry point, as `race --format json` prints it.
        lines: Vec<RaceLine>,
        /// The scope of each verdict, as a sentence; empty for a refusal.
        coverage: Vec<String>,
        /// Pipeline-overridable constants without a value, with the values that were assumed.
        assumed: BTreeMap<String, String>,
        /// Fixes that are edits of the text.
        fixes: Vec<PlaygroundFix>,
    },
    /// A test as a kernel of WGSL.
    Kernel(PlaygroundKernel),
    /// A results folder, as `report` reads it.
    Record {
        /// Its files.
        files: Vec<PlaygroundFile>,
    },
    /// The devices of the machine: their names and what their drivers call them.
    Devices {
        /// The devices.
        devices: Vec<PlaygroundName>,
    },
    /// The verdict on a device, as `run --format json` prints it.
    Run {
        /// The verdict.
        line: Box<RunLine>,
    },
    /// The mistakes in the input.
    Rejected {
        /// Every mistake with its position.
        mistakes: Vec<RejectedLine>,
    },
}

/// The models, tests and faults of the playground.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundCatalogue {
    /// [`PLAYGROUND_SCHEMA`].
    pub schema: String,
    /// Version of the tool.
    pub tool: String,
    /// The shipped models.
    pub models: Vec<PlaygroundName>,
    /// Collections of embedded tests for the gallery.
    pub collections: Vec<PlaygroundCollection>,
    /// The ids of the embedded tests.
    pub tests: Vec<String>,
    /// The faults of the simulated GPU.
    pub faults: Vec<PlaygroundName>,
}

/// Tests under one title in the gallery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundCollection {
    /// The title.
    pub title: String,
    /// The ids of the tests, with one line about each.
    pub tests: Vec<PlaygroundName>,
}

/// A name with its description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundName {
    /// The name.
    pub name: String,
    /// A description of one line.
    pub description: String,
}

/// A problem of a text. Positions count UTF-16 code units, as editors in browsers do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundProblem {
    /// The start of its place.
    pub from: u32,
    /// The end of its place.
    pub to: u32,
    /// The severity.
    pub severity: PlaygroundSeverity,
    /// The message.
    pub message: String,
    /// Alternative corrections.
    pub corrections: Vec<PlaygroundCorrection>,
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlaygroundSeverity {
    /// The text is invalid.
    Error,
    /// The text is valid and probably wrong.
    Warning,
    /// A remark.
    Info,
}

/// A change of a text with a title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundCorrection {
    /// The title.
    pub title: String,
    /// The replacements, in text order and disjoint.
    pub edits: Vec<PlaygroundEdit>,
}

/// A litmus test with another order, scope, strength or storage class in one instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundVariation {
    /// The part of the instruction that differs, in words.
    pub part: String,
    /// The text of the instruction.
    pub instruction: String,
    /// The replacements, in text order and disjoint.
    pub edits: Vec<PlaygroundEdit>,
}

/// A replacement of a part of a text, in UTF-16 code units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundEdit {
    /// The start of the part.
    pub from: u32,
    /// Its end.
    pub to: u32,
    /// The new text.
    pub insert: String,
}

/// A warning about a part of a test's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundWarning {
    /// Line, from 1.
    #[schemars(range(min = 1))]
    pub line: u32,
    /// Column in characters, from 1.
    #[schemars(range(min = 1))]
    pub column: u32,
    /// The message.
    pub message: String,
}

/// A fix of a shader, together with those of earlier findings of its entry point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundFix {
    /// The entry point.
    pub entry: String,
    /// The index of the finding in its line, from 0.
    pub finding: u32,
    /// The fix in words.
    pub title: String,
    /// The text of the shader after it.
    pub text: String,
}

/// A test as a kernel of WGSL that plays many instances at once.
///
/// Its entry point `test` runs them and `collect` reads the final values, each with the same number of workgroups,
/// which is a power of two. Bindings 0 to 4 of group 0 are the atomic and the plain locations, the results, scratch
/// memory of 1024 words, and four words of parameters: a factor of the placement, the distance between the
/// workgroups of an instance, an odd shift between its lanes, and rounds of stress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundKernel {
    /// The source.
    pub source: String,
    /// Invocations of a workgroup; each plays one instance of every thread.
    pub workgroup_size: u32,
    /// The number of workgroups that the threads of an instance are in.
    pub workgroups_of_instance: u32,
    /// The number of locations: words for each instance in bindings 0 and 1.
    pub locations: u32,
    /// The names of the values of an outcome: words for each instance in binding 2, in this order.
    pub observables: Vec<String>,
    /// The mapping of the test to WGSL, as sentences.
    pub mapping: Vec<String>,
}

/// A consistent execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundExecution {
    /// Its number and its final state.
    pub title: String,
    /// Threads side by side, and the edges.
    pub text: String,
    /// The execution graph as SVG.
    pub picture: String,
}

/// A run of a [`PlaygroundKernel`] in a browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaygroundGpuRun {
    /// The adapter, as the browser names it.
    pub adapter: String,
    /// The browser, by its user agent.
    pub browser: String,
    /// The operating system, as the browser names it.
    pub system: String,
    /// The number of processors that the browser names.
    pub processors: u32,
    /// The start of the run, as in RFC 3339.
    pub started: String,
    /// The duration of the run.
    pub milliseconds: u64,
    /// The seed of the choices of each dispatch.
    pub seed: u64,
    /// The number of dispatches.
    pub dispatches: u64,
    /// The source of the kernel.
    pub kernel: String,
    /// Instances that left results unwritten.
    pub not_executed: u64,
    /// The outcomes of all other instances.
    pub outcomes: Vec<PlaygroundCount>,
}

/// The number of instances with an outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaygroundCount {
    /// Final values by name.
    pub state: State,
    /// The number of instances.
    pub count: u64,
}

/// A file of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundFile {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Why a model allows or forbids an outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundExplanation {
    /// The answer in one line.
    pub headline: String,
    /// The explanation as text, as `explain` prints it.
    pub text: String,
    /// The execution graph as SVG, as `explain --format svg` prints it.
    pub picture: String,
}
