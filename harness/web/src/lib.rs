//! The playground: models, explanations, races of shaders and the simulated GPU behind one entry, for WebAssembly.
//!
//! [`answer`] takes a request as JSON and returns an answer as JSON; `results::wire` defines both. It reads
//! no clock, no file and no randomness, so that the same request has the same answer in a browser and in the
//! program. A limit on steps replaces limits on time; a page stops a request by ending its worker.
//!
//! `exports` makes the entry callable from JavaScript without generated code.

mod check;
mod editor;
mod explain;
#[cfg(target_family = "wasm")]
mod exports;
mod gallery;
#[cfg(not(target_family = "wasm"))]
mod page;
mod question;
mod races;
mod record;
mod simulate;
mod webgpu;

use litmus::corpus;
use model::Model;
#[cfg(not(target_family = "wasm"))]
pub use page::{PAGE_FILES, PageFile};
pub use races::races_answer;
use results::wire::{
    PLAYGROUND_SCHEMA, PlaygroundAnswer, PlaygroundCatalogue, PlaygroundName, PlaygroundRequest, RejectedLine,
};

/// Answers a request.
///
/// ```
/// let answer = web::answer(r#"{"request": "test", "id": "sb/SB+rlx-rlx"}"#);
/// assert!(answer.starts_with(r#"{"answer":"test","id":"sb/SB+rlx-rlx""#));
/// ```
pub fn answer(request: &str) -> String {
    let answer = match serde_json::from_str(request) {
        Ok(request) => answer_request(request),
        Err(error) => rejected_answer(format!("not a request of {PLAYGROUND_SCHEMA}: {error}")),
    };
    serde_json::to_string(&answer).unwrap_or_else(|error| {
        let message = serde_json::Value::String(error.to_string());
        format!(
            "{{\"answer\":\"rejected\",\"mistakes\":[{{\"file\":\"\",\"error\":{message},\"line\":1,\"column\":1}}]}}"
        )
    })
}

fn answer_request(request: PlaygroundRequest) -> PlaygroundAnswer {
    let result = match request {
        PlaygroundRequest::Catalogue {} => Ok(PlaygroundAnswer::Catalogue(catalogue())),
        PlaygroundRequest::Test { id } => embedded_test(id),
        PlaygroundRequest::Model { name } => shipped_model(name),
        PlaygroundRequest::Problems(document) => Ok(editor::list_problems(&document)),
        PlaygroundRequest::Complete { document, offset } => Ok(editor::list_completions(&document, offset)),
        PlaygroundRequest::Meaning { document, offset } => Ok(editor::word_meaning(&document, offset)),
        PlaygroundRequest::Vary { text, offset } => Ok(editor::list_variations(&text, offset)),
        PlaygroundRequest::Check(question) => check::check(&question),
        PlaygroundRequest::Explain { question, outcome } => explain::explain(&question, outcome.as_deref()),
        PlaygroundRequest::Executions { question, outcome } => {
            explain::list_executions(&question, outcome.as_deref())
        }
        PlaygroundRequest::Simulate { question, fault, instances, seed } => {
            simulate::simulate(&question, fault.as_deref(), instances, seed)
        }
        PlaygroundRequest::Races(shader) => races::find_races(&shader),
        PlaygroundRequest::Kernel(question) => webgpu::translate(&question),
        PlaygroundRequest::Record { question, run } => record::record_run(&question, &run),
        PlaygroundRequest::Devices {} | PlaygroundRequest::Run { .. } => {
            Err(question::mistake_without_position(
                "no devices here; only the page of `vk-litmus serve` reaches those of its machine".to_owned(),
            ))
        }
    };
    result.unwrap_or_else(|mistakes| PlaygroundAnswer::Rejected { mistakes })
}

/// Returns the answer to a request without a position in a text.
fn rejected_answer(error: String) -> PlaygroundAnswer {
    PlaygroundAnswer::Rejected { mistakes: question::mistake_without_position(error) }
}

fn catalogue() -> PlaygroundCatalogue {
    let to_name = |(name, description): (&str, &str)| PlaygroundName {
        name: name.to_owned(),
        description: description.to_owned(),
    };
    PlaygroundCatalogue {
        schema: PLAYGROUND_SCHEMA.to_owned(),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        models: Model::shipped_models().iter().copied().map(to_name).collect(),
        collections: gallery::collections(),
        tests: corpus::tests().into_iter().map(|test| test.id).collect(),
        faults: sim::FAULTS.iter().map(|row| to_name((row.name, row.rule))).collect(),
    }
}

fn shipped_model(name: String) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    match Model::shipped_text(&name) {
        Some(text) => Ok(PlaygroundAnswer::Model { name, text: text.to_owned() }),
        None => Err(question::mistake_without_position(format!(
            "unknown model `{name}`: `catalogue` lists the models"
        ))),
    }
}

fn embedded_test(id: String) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    match corpus::tests().into_iter().find(|test| test.id == id) {
        Some(test) => Ok(PlaygroundAnswer::Test { id, text: test.text.to_owned() }),
        None => {
            Err(question::mistake_without_position(format!("unknown test `{id}`: `catalogue` lists the ids")))
        }
    }
}
