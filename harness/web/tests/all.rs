//! The entry gives the answers of the program's library, and answers every input.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::time::Duration;

use campaign::check::{CheckModels, CheckOptions, Checked, checked};
use campaign::source::{Origin, TestSource};
use explanation::Explained;
use litmus::corpus;
use model::{ExplainOptions, Model};
use results::wire::{
    CheckLine, PlaygroundAnswer, PlaygroundQuestion, PlaygroundRequest, RejectedLine, VerdictWord,
};

fn ask(request: &PlaygroundRequest) -> PlaygroundAnswer {
    serde_json::from_str(&web::answer(&serde_json::to_string(request).unwrap())).unwrap()
}

fn question(text: &str) -> PlaygroundQuestion {
    PlaygroundQuestion { text: text.to_owned(), model: None, steps: None }
}

fn mistakes(answer: PlaygroundAnswer) -> Vec<RejectedLine> {
    match answer {
        PlaygroundAnswer::Rejected { mistakes } => mistakes,
        answer => panic!("{answer:?}"),
    }
}

/// Returns the answer of `check` without its place and its time.
fn library_check(id: &str, text: &str, models: &CheckModels) -> CheckLine {
    let source = TestSource {
        id: id.to_owned(),
        file: "test.litmus".to_owned(),
        argument: id.to_owned(),
        variant: String::new(),
        origin: Origin::Embedded(id.to_owned()),
        text: Ok(text.to_owned()),
    };
    let asked = CheckOptions {
        inputs: frontend::InputMode::Auto,
        timeout: Duration::from_secs(600),
        unroll: None,
        progress: None,
    };
    match checked(source, models, asked) {
        Checked::Answered(line, ..) => CheckLine { id: line.name.clone(), micros: 0, ..*line },
        Checked::Rejected(rejected) => panic!("{id}: {rejected:?}"),
    }
}

#[test]
fn checks_are_those_of_the_library() {
    let models = CheckModels::load(None).unwrap();
    let mut compared = 0;
    for test in corpus::tests().into_iter().step_by(9) {
        match ask(&PlaygroundRequest::Check(question(test.text))) {
            PlaygroundAnswer::Check { line, .. } => {
                assert_eq!(*line, library_check(&test.id, test.text, &models), "{}", test.id);
                compared += 1;
            }
            answer => panic!("{}: {answer:?}", test.id),
        }
    }
    assert!(compared > 80, "{compared}");
}

#[test]
fn explanations_are_those_of_the_library() {
    for id in ["mp/MP+rel-acq", "sb/SB+rlx-rlx", "mp/MP+plain"] {
        let text = corpus::tests().into_iter().find(|test| test.id == id).unwrap().text;
        let request = PlaygroundRequest::Explain { question: question(text), outcome: None };
        let PlaygroundAnswer::Explain(told) = ask(&request) else { panic!("{id}") };
        let test = litmus::parse(text, "test.litmus").unwrap();
        let model = Model::shipped("vulkan").unwrap().unwrap();
        let options = ExplainOptions { forbid: true, ..ExplainOptions::default() };
        let explanation = model::explain_outcome(&test, &model, &options).unwrap();
        let explained =
            Explained { test: &test, source: text, file: "test.litmus", explanation: &explanation };
        assert_eq!(told.text, explanation::text(explained), "{id}");
        assert_eq!(told.picture, explanation::svg(explained), "{id}");
        assert_eq!(told.headline, explanation::headline(explained), "{id}");
    }
}

#[test]
fn an_outcome_of_a_check_can_be_explained() {
    let text = corpus::tests().into_iter().find(|test| test.id == "sb/SB+rlx-rlx").unwrap().text;
    let PlaygroundAnswer::Check { line, .. } = ask(&PlaygroundRequest::Check(question(text))) else {
        panic!("no prediction")
    };
    assert!(line.outcomes.iter().any(|outcome| outcome.weak && outcome.allowed));
    for outcome in &line.outcomes {
        // As the page writes it.
        let state = serde_json::to_value(&outcome.state).unwrap();
        let terms = state.as_object().unwrap().iter().map(|(name, value)| format!("{name} == {value}"));
        let outcome_text = Some(terms.collect::<Vec<_>>().join(" /\\ "));
        let request = PlaygroundRequest::Explain { question: question(text), outcome: outcome_text };
        let PlaygroundAnswer::Explain(told) = ask(&request) else { panic!("{:?}", outcome.state) };
        let word = if outcome.allowed { "is allowed" } else { "is forbidden" };
        assert!(told.headline.ends_with(word), "{}", told.headline);
    }
}

#[test]
fn the_simulated_gpu_is_sound_until_a_fault_is_chosen() {
    let text = corpus::tests().into_iter().find(|test| test.id == "mp/MP+rel-acq").unwrap().text;
    let run = |fault: Option<&str>| {
        let fault = fault.map(str::to_owned);
        let request =
            PlaygroundRequest::Simulate { question: question(text), fault, instances: 16_000, seed: 1 };
        match ask(&request) {
            PlaygroundAnswer::Simulate { line } => *line,
            answer => panic!("{answer:?}"),
        }
    };
    let sound = run(None);
    assert_eq!((sound.verdict, sound.instances >= 16_000), (VerdictWord::Conforms, true), "{sound:?}");
    assert_eq!(sound, run(None), "a seed decides everything");
    let faulty = run(Some("release-does-not-drain-stores"));
    assert_eq!(faulty.verdict, VerdictWord::Violates, "{faulty:?}");
    assert!(faulty.replay.ends_with("--fault release-does-not-drain-stores"), "{}", faulty.replay);
}

#[test]
fn mistakes_have_their_place() {
    let check = |text: &str| mistakes(ask(&PlaygroundRequest::Check(question(text))));
    let text = corpus::tests().into_iter().find(|test| test.id == "sb/SB+rlx-rlx").unwrap().text;
    let line = 1 + text.lines().position(|line| line.contains("st.atom")).unwrap();
    let found = check(&text.replacen("st.atom", "st.atmo", 1));
    assert_eq!((found[0].line as usize, found[0].column), (line, 4), "{found:?}");
    assert!(check(&"x".repeat(10 << 20))[0].error.contains("bytes"));
    assert_eq!(check("")[0].line, 1);
    let unknown = PlaygroundQuestion { model: Some("vulcan".to_owned()), ..question(text) };
    assert!(mistakes(ask(&PlaygroundRequest::Check(unknown)))[0].error.contains("unknown model `vulcan`"));
    for request in ["", "{}", "{\"request\":\"check\"}", "{\"request\":\"catalogue\",\"more\":1}", "[1"] {
        let answer: PlaygroundAnswer = serde_json::from_str(&web::answer(request)).unwrap();
        assert!(
            mistakes(answer)[0].error.starts_with("not a request of vk-litmus/playground/1"),
            "{request}"
        );
    }
}

#[test]
fn a_limit_on_steps_ends_a_check_without_an_answer() {
    let text = corpus::tests().into_iter().find(|test| test.id == "mp/MP+rel-acq").unwrap().text;
    let limited = PlaygroundQuestion { steps: Some(1), ..question(text) };
    match ask(&PlaygroundRequest::Check(limited)) {
        PlaygroundAnswer::Check { line, .. } => {
            assert_eq!(line.race, results::wire::RaceWord::Unknown, "{line:?}");
        }
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn the_catalogue_lists_what_requests_name() {
    let PlaygroundAnswer::Catalogue(catalogue) = ask(&PlaygroundRequest::Catalogue {}) else {
        panic!("no catalogue")
    };
    assert!(catalogue.models.iter().any(|model| model.name == "vulkan"));
    assert_eq!(catalogue.tests.len(), corpus::tests().len());
    assert!(catalogue.faults.iter().all(|fault| fault.name.parse::<sim::Fault>().is_ok()));
    for id in catalogue.tests.iter().take(3) {
        let answer = ask(&PlaygroundRequest::Test { id: id.clone() });
        assert!(matches!(answer, PlaygroundAnswer::Test { .. }), "{answer:?}");
    }
    assert_eq!(mistakes(ask(&PlaygroundRequest::Test { id: "none".to_owned() })).len(), 1);
}
