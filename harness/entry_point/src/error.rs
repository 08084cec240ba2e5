//! Errors: malformed modules, unsupported features and limits, with their position.

use rspirv::spirv::Op;
use spirv_reader::{SpirvError, SpirvModule, SpirvProblem};

pub use spirv_reader::SourcePosition;

/// Why a module was not read, lifted or walked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{what}")]
pub struct Refusal {
    /// The position: a source line if there is debug information, else a line of text or a word.
    pub place: SourcePosition,
    pub what: Problem,
}

/// The reason of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not assembly.
    #[error("{0}")]
    Syntax(String),
    /// The words are not a module, or its instructions contradict each other.
    #[error("malformed module: {0}")]
    Malformed(String),
    /// The uses that break validity rules, each as a text. Such a module has no defined meaning.
    #[error("invalid SPIR-V: {}", .0.join("; "))]
    Invalid(Vec<String>),
    #[error("cannot analyze: {0}")]
    Unsupported(String),
    /// No such entry point, or none was named and several exist.
    #[error("{0}")]
    EntryPoint(String),
    /// Two overlapping accesses have different sizes.
    #[error(
        "cannot analyze: {name} is accessed with {first} bytes here and with {second} bytes elsewhere; use \
         one size"
    )]
    MixedSize {
        name: String,
        /// Size of this access in bytes.
        first: u32,
        /// Size of the other access in bytes.
        second: u32,
    },
    #[error(
        "cannot analyze: {what} depends on a read value with an unbounded domain; fix the value with \
         inputs"
    )]
    Unbounded {
        /// The dependent operation.
        what: String,
    },
    /// Control flow or an address depends on a float.
    #[error("cannot analyze: {what} is computed from floats or opaque values")]
    Opaque {
        /// The dependent operation.
        what: String,
    },
    /// The same in a graphics stage, where an input is not given.
    #[error(
        "cannot analyze: {what} is computed from floats or opaque values, such as the input at location \
         {location}: set it under [input.{location}] in a --case file"
    )]
    MissingStageInput {
        /// The dependent operation.
        what: String,
        location: u32,
    },
    /// The same, where the state of a sampler is not given.
    #[error(
        "cannot analyze: {what} is computed from floats or opaque values, such as a sampled value: set the \
         filter with --sampler SET.BINDING=linear"
    )]
    Sampled {
        /// The dependent operation.
        what: String,
    },
    /// The final contents that a claim is about are computed from floats or opaque values.
    #[error("cannot analyze: the assertion about `{element}` is computed from floats or opaque values")]
    OpaqueClaim { element: String },
    /// A limit of the size of a module or of its memory.
    #[error("cannot analyze: more than {bound} {what}")]
    Budget {
        /// The limited quantity.
        what: &'static str,
        bound: usize,
    },
    /// A limit of the work of an analysis.
    #[error("cannot analyze: more than {bound} {what}{remedy}")]
    Exhausted {
        /// The limited quantity.
        what: &'static str,
        bound: usize,
        /// The options to lower; empty if none helps.
        remedy: &'static str,
    },
    #[error("cannot analyze: more than {bound} invocations{}", if *one_workgroup { " (one workgroup alone exceeds the limit)" } else { "; lower --grid" })]
    Invocations {
        bound: usize,
        /// True if a single workgroup exceeds the limit.
        one_workgroup: bool,
    },
    /// The deadline has passed; see `AnalysisOptions::deadline`.
    #[error("the time limit was reached")]
    OutOfTime,
    /// A limit was reached in a loop that may be endless.
    #[error("{limit} in this loop, after {iterations} iterations; if it ends, raise the limit with {}", .limit.option())]
    LongLoop { limit: WalkLimit, iterations: u32 },
    /// Fewer schedules than requested were explored (`AnalysisOptions::schedules`): the time or step
    /// limit was reached.
    #[error(
        "{tried} of the {asked} requested schedules were explored: the limit of time or steps was \
         reached"
    )]
    TooFewSchedules { tried: u64, asked: u64 },
    #[error("annotation: {0}")]
    Annotation(String),
    /// An input that is malformed or does not fit the kernel.
    #[error("{0}")]
    Input(String),
    /// A claim about a variable or element that the module does not have.
    #[error("{of}: in `{claim}`: {what}")]
    Claim {
        /// The source of the claim: `--assert`, or an annotation.
        of: &'static str,
        claim: String,
        what: String,
        /// The unknown word with the known alternatives, if the reason is an unknown name.
        word: Option<(String, Vec<String>)>,
    },
}

/// A limit of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalkLimit {
    #[error("the time limit was reached")]
    Time,
    #[error("the limit of {0} steps was reached")]
    Steps(u64),
}

impl WalkLimit {
    /// Returns the option that raises the limit.
    pub fn option(self) -> &'static str {
        match self {
            WalkLimit::Time => "--time",
            WalkLimit::Steps(_) => "--steps",
        }
    }
}

impl Problem {
    /// Returns true for a limit of time or size, which implies no defect of the module.
    pub fn is_limit(&self) -> bool {
        matches!(self, Problem::Budget { .. } | Problem::Invocations { .. }) || self.is_exhausted()
    }

    /// Returns true if only time or steps were insufficient to complete the analysis.
    pub fn is_exhausted(&self) -> bool {
        use Problem::{Exhausted, LongLoop, OutOfTime, TooFewSchedules};
        matches!(self, Exhausted { .. } | OutOfTime | LongLoop { .. } | TooFewSchedules { .. })
    }

    pub fn located_at(self, place: SourcePosition) -> Refusal {
        Refusal { place, what: self }
    }
}

impl From<SpirvProblem> for Problem {
    fn from(problem: SpirvProblem) -> Problem {
        match problem {
            SpirvProblem::Syntax(what) => Problem::Syntax(what),
            SpirvProblem::Malformed(what) => Problem::Malformed(what),
            SpirvProblem::Unsupported(what) => Problem::Unsupported(what),
            SpirvProblem::EntryPoint(what) => Problem::EntryPoint(what),
            SpirvProblem::Budget { what, bound } => Problem::Budget { what, bound },
            SpirvProblem::Annotation(what) => Problem::Annotation(what),
        }
    }
}

/// A problem of the whole module.
impl From<Problem> for Refusal {
    fn from(what: Problem) -> Refusal {
        what.located_at(SourcePosition::Module)
    }
}

impl From<SpirvProblem> for Refusal {
    fn from(problem: SpirvProblem) -> Refusal {
        Problem::from(problem).into()
    }
}

impl From<SpirvError> for Refusal {
    fn from(error: SpirvError) -> Refusal {
        Problem::from(error.what).located_at(error.place)
    }
}

/// Reads a module from words, or from text if the first word is not the magic number.
///
/// # Errors
/// Returns the position of the first error.
pub fn read_module(bytes: &[u8]) -> Result<SpirvModule, Refusal> {
    Ok(spirv_reader::read_module(bytes)?)
}

pub fn malformed(what: impl Into<String>) -> Problem {
    Problem::Malformed(what.into())
}

pub fn unsupported(what: impl Into<String>) -> Problem {
    Problem::Unsupported(what.into())
}

/// Refuses an instruction by its name.
pub fn unknown_instruction(op: Op) -> Problem {
    let name = format!("{op:?}");
    let why = if name.starts_with("RayQuery") { ", because ray queries are not evaluated" } else { "" };
    unsupported(format!("Op{name}{why}"))
}

/// Returns the source file and line of a position in a module; `file` is the module's own file.
pub fn source_location(
    file: &str,
    module: &SpirvModule,
    line: u32,
    place: SourcePosition,
) -> (String, Option<u32>) {
    let source = module.source_line(line);
    let named = source.filter(|source| !source.file.is_empty()).map(|source| source.file.clone());
    let line = match (source, place) {
        (Some(source), _) => Some(source.line),
        (None, SourcePosition::Line(line)) => Some(line),
        (None, _) => None,
    };
    (named.unwrap_or_else(|| file.to_owned()), line)
}
