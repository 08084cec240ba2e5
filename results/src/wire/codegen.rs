//! What is published about machine code: what became of a test's kernels, and what relaxing the test changes in them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of [`CodegenLine`].
pub const CODEGEN_SCHEMA: &str = "vk-litmus/codegen/1";
/// Version of [`CodegenDiffLine`].
pub const CODEGEN_DIFF_SCHEMA: &str = "vk-litmus/codegen-diff/1";

/// A line of `codegen --format json`: a test on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenLine {
    /// [`CODEGEN_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// The test's name.
    pub name: String,
    /// The device.
    pub device: String,
    /// Its driver, with the version.
    pub driver: String,
    /// What became of the kernels, all together.
    pub verdict: CodegenVerdict,
    /// What is missing, for `skipped`; how the compiler ended, for `crashes`.
    pub reason: Option<String>,
    /// The smallest test on which the compiler ends in the same way, as text; for `crashes`.
    pub reduced: Option<String>,
    /// The kernels, form by form.
    pub kernels: Vec<CodegenKernel>,
    /// Forms that the test does not have, and why.
    pub without: Vec<CodegenWithout>,
    /// A command that does it again.
    pub replay: String,
}

/// What became of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CodegenVerdict {
    /// The driver compiled them.
    Compiles,
    /// The compiler crashed, aborted, hung or gave an error.
    Crashes,
    /// The device lacks something, or no form of the test has a kernel.
    Skipped,
}

/// A form that a test does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenWithout {
    /// The form.
    pub form: String,
    /// Why.
    pub why: String,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenKernel {
    /// Its form: `merged`, `split` or `split.restrict`.
    pub form: String,
    /// The threads that it plays: `P0,P1`.
    pub kernel: String,
    /// What they do to memory: `producer`, `consumer`, `both` or `neither`.
    pub role: String,
    /// What became of it.
    pub verdict: CodegenVerdict,
    /// How the compiler ended, where it did not compile.
    pub reason: Option<String>,
    /// Time that the driver took, in microseconds; null where it did not compile.
    pub micros: Option<u64>,
    /// Machine instructions; null where the driver's text is no machine code.
    pub instructions: Option<u64>,
    /// Why the driver's text is no machine code; null where it is.
    pub not_disassembled: Option<String>,
    /// The driver's figures, by the driver's names.
    pub statistics: Vec<CodegenStatistic>,
    /// The machine code with `--emit asm`, else empty.
    pub code: Vec<CodegenCode>,
    /// The driver's forms of the code with `--emit ir`, else empty.
    pub forms: Vec<CodegenForm>,
}

/// A figure of the driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenStatistic {
    /// The driver's name for it.
    pub name: String,
    /// Its value.
    pub value: f64,
}

/// A line of machine code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenCode {
    /// The line.
    pub text: String,
    /// The thread and the instruction of the test that it comes from, as in `P0.1: st.atom.rel.dv.sc0.semsc0 y, 1`; `P0:
    /// results` where it writes results down; null where it belongs to none.
    pub source: Option<String>,
}

/// A form of the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenForm {
    /// The driver's name for it.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A line of `codegen --emit diff --format json`: a relaxation of a test, in one form on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenDiffLine {
    /// [`CODEGEN_DIFF_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// The device.
    pub device: String,
    /// The form of the kernels.
    pub form: String,
    /// The shape of the test: what stands before `+` in its name.
    pub shape: String,
    /// Where the test is relaxed, and how: `P0.1: relaxed`.
    pub step: String,
    /// The kind of the relaxation: the step without its place.
    pub relaxation: String,
    /// Whether the model needs what is relaxed: without it the forbidden outcome is allowed, or the program races. Null
    /// where the model does not answer.
    pub needed: Option<bool>,
    /// What the relaxation changes.
    pub verdict: CodegenDiffVerdict,
    /// In more detail: `same`, `schedule` or `differs`; for `skipped` what is missing.
    pub detail: String,
}

/// What a relaxation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CodegenDiffVerdict {
    /// Nothing that has to do with memory. Evidence, and never a failure by itself.
    NoEffect,
    /// Accesses, their bits, waits or barriers.
    Differs,
    /// One of the two has no machine code to compare.
    Skipped,
}
