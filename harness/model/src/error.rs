//! Why there is no prediction.

use crate::cat::CatErrors;

/// Why a test has no prediction under a model.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// The test has more threads than the engine takes.
    #[error("the test has {threads} threads; at most {bound} are supported")]
    TooManyThreads {
        /// Threads of the test.
        threads: usize,
        /// The bound.
        bound: usize,
    },
    /// An execution has more events than the engine takes.
    #[error("the test has {events} events, initial writes included; at most {bound} are supported")]
    TooManyEvents {
        /// Events of the execution.
        events: usize,
        /// The bound.
        bound: usize,
    },
    /// A thread has more control-flow paths than the engine takes.
    #[error("thread P{thread} has more than {bound} control-flow paths")]
    TooManyPaths {
        /// The number of the thread.
        thread: u32,
        /// The bound.
        bound: usize,
    },
    /// Lanes may come together in more ways than the engine takes.
    #[error("the lanes of a subgroup may come together in more than {bound} ways")]
    TooManyTangles {
        /// The bound.
        bound: usize,
    },
    /// The test is in the dialect of another memory model.
    #[error("a test of {test} cannot be judged by `{model}`, a model of {of}")]
    ForeignModel {
        /// The language of the test.
        test: &'static str,
        /// The model.
        model: String,
        /// What the model judges.
        of: &'static str,
    },
    /// One name is accessed through two storage classes, which no SPIR-V does: a variable has one.
    #[error(
        "`{name}` is accessed through two storage classes; a variable has one, and an alias may have another"
    )]
    TwoStorageClasses {
        /// The name.
        name: String,
        /// The access through the second one.
        span: litmus::Span,
    },
    /// The test or the model asks for something that is not built yet.
    #[error("not available: {what}")]
    NotAvailable {
        /// What it is.
        what: String,
    },
    /// The model names a base set or relation that candidate executions do not have.
    #[error("the model uses `{name}`, which no candidate execution has")]
    UnknownBase {
        /// The name.
        name: String,
    },
    /// A test that no parser makes: something in it refers to what is not there.
    #[error(transparent)]
    NoEntry(litmus::NoEntry),
    /// The model's text is wrong.
    #[error("the model cannot be compiled")]
    Model(#[source] CatErrors),
}
