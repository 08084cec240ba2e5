//! Jobs: analyses and requests that run in separate threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::thread::Builder;

use editor::TextProblem;
use lsp_server::{Message, RequestId, ResponseError};
use serde_json::Value;

/// The stack of a job: parsers recurse as deep as their limits allow.
const STACK_SIZE: usize = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentAnalysis {
    /// By a parser of the server.
    Text,
    /// By `lint`.
    Lint,
    /// By `race`.
    Race,
}

/// An input of the main loop.
#[derive(Debug)]
pub enum LoopInput {
    /// A message of the editor.
    Message(Message),
    /// The editor closed the connection.
    ConnectionClosed,
    /// The result of an analysis; `None` if it was cancelled or failed.
    AnalysisFinished {
        address: String,
        version: i32,
        analysis: DocumentAnalysis,
        problems: Option<Vec<TextProblem>>,
    },
    RequestAnswered {
        id: RequestId,
        answer: Result<Value, ResponseError>,
        /// A verdict about a version of a document, to be shown in its code lens.
        verdict: Option<EditorVerdict>,
    },
}

/// A verdict of `check` or `race`.
#[derive(Clone, Debug)]
pub struct EditorVerdict {
    pub address: String,
    pub version: i32,
    /// The verdict in words.
    pub description: String,
}

/// Runs `work` in a thread and sends its event; if it panics, sends the event of `on_panic` instead.
pub fn spawn_job(
    events: &Sender<LoopInput>,
    work: impl FnOnce() -> LoopInput + Send + 'static,
    on_panic: impl FnOnce() -> LoopInput + Send + 'static,
) {
    let sender = events.clone();
    let job = move || {
        let event = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| on_panic());
        // The main loop has ended if nothing receives.
        drop(sender.send(event));
    };
    if let Err(error) = Builder::new().stack_size(STACK_SIZE).spawn(job) {
        tracing::warn!("start a thread: {error}");
    }
}
