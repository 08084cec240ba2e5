//! Requests to the playground's entry, and its answers that no command publishes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CheckLine, RejectedLine, RunLine};

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
    /// The prediction, as `check --format json` prints it.
    Check {
        /// The prediction.
        line: Box<CheckLine>,
        /// Warnings about the text.
        warnings: Vec<PlaygroundWarning>,
    },
    /// An explanation.
    Explain(PlaygroundExplanation),
    /// The verdict on the simulated GPU, as `run --format json` prints it.
    Simulate {
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
    /// The ids of the embedded tests.
    pub tests: Vec<String>,
    /// The faults of the simulated GPU.
    pub faults: Vec<PlaygroundName>,
}

/// A name with its description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaygroundName {
    /// The name.
    pub name: String,
    /// A description of one line.
    pub description: String,
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
