//! The entry point returns the answers of the library, and an answer for every input.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use campaign::check::{CheckModels, CheckOptions, CheckResult, check_source};
use campaign::source::{SourceOrigin, TestSource};
use explanation::Explained;
use litmus::corpus;
use model::{ExplainOptions, Model};
use results::wire::{
    CheckLine, PlaygroundAnswer, PlaygroundFix, PlaygroundLanguage, PlaygroundQuestion, PlaygroundRequest,
    PlaygroundSeverity, PlaygroundShader, PlaygroundText, PlaygroundTextLanguage, RaceLine, RaceVerdict,
    RejectedLine, VerdictWord,
};
use shader_source::wgsl::OverrideValues;

fn answer(request: &PlaygroundRequest) -> PlaygroundAnswer {
    serde_json::from_str(&web::answer(&serde_json::to_string(request).unwrap())).unwrap()
}

fn question(text: &str) -> PlaygroundQuestion {
    PlaygroundQuestion { text: text.to_owned(), model: None, cat: None, steps: None }
}

fn mistakes(answer: PlaygroundAnswer) -> Vec<RejectedLine> {
    match answer {
        PlaygroundAnswer::Rejected { mistakes } => mistakes,
        answer => panic!("{answer:?}"),
    }
}

/// Returns the answer of `check` without its position and time.
fn library_check(id: &str, text: &str, models: &CheckModels) -> CheckLine {
    let source = TestSource {
        id: id.to_owned(),
        file: "test.litmus".to_owned(),
        argument: id.to_owned(),
        variant: String::new(),
        origin: SourceOrigin::Embedded(id.to_owned()),
        text: Ok(text.to_owned()),
    };
    let options = CheckOptions {
        inputs: analysis::InputMode::Auto,
        timeout: Duration::from_secs(600),
        unroll: None,
        progress: None,
    };
    match check_source(source, models, options) {
        CheckResult::Answered(line, ..) => CheckLine { id: line.name.clone(), micros: 0, ..*line },
        CheckResult::Rejected(rejected) => panic!("{id}: {rejected:?}"),
    }
}

/// With `VK_LITMUS_SOAK`, on every test of the corpus.
#[test]
fn checks_are_those_of_the_library() {
    let models = CheckModels::load(None).unwrap();
    let interval = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 9 };
    let mut compared = 0;
    for test in corpus::tests().into_iter().step_by(interval) {
        match answer(&PlaygroundRequest::Check(question(test.text))) {
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
        let PlaygroundAnswer::Explain(told) = answer(&request) else { panic!("{id}") };
        let test = litmus::parse(text, "test.litmus").unwrap();
        let model = Model::shipped("vulkan").unwrap().unwrap();
        let options = ExplainOptions { find_forbidding_fix: true, ..ExplainOptions::default() };
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
    let PlaygroundAnswer::Check { line, .. } = answer(&PlaygroundRequest::Check(question(text))) else {
        panic!("no prediction")
    };
    assert!(line.outcomes.iter().any(|outcome| outcome.weak && outcome.allowed));
    for outcome in &line.outcomes {
        // The format of the page.
        let state = serde_json::to_value(&outcome.state).unwrap();
        let terms = state.as_object().unwrap().iter().map(|(name, value)| format!("{name} == {value}"));
        let outcome_text = Some(terms.collect::<Vec<_>>().join(" /\\ "));
        let request = PlaygroundRequest::Explain { question: question(text), outcome: outcome_text };
        let PlaygroundAnswer::Explain(told) = answer(&request) else { panic!("{:?}", outcome.state) };
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
        match answer(&request) {
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
    let check = |text: &str| mistakes(answer(&PlaygroundRequest::Check(question(text))));
    let text = corpus::tests().into_iter().find(|test| test.id == "sb/SB+rlx-rlx").unwrap().text;
    let line = 1 + text.lines().position(|line| line.contains("st.atom")).unwrap();
    let found = check(&text.replacen("st.atom", "st.atmo", 1));
    assert_eq!((found[0].line as usize, found[0].column), (line, 4), "{found:?}");
    assert!(check(&"x".repeat(10 << 20))[0].error.contains("bytes"));
    assert_eq!(check("")[0].line, 1);
    let unknown = PlaygroundQuestion { model: Some("vulcan".to_owned()), ..question(text) };
    assert!(mistakes(answer(&PlaygroundRequest::Check(unknown)))[0].error.contains("unknown model `vulcan`"));
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
    match answer(&PlaygroundRequest::Check(limited)) {
        PlaygroundAnswer::Check { line, .. } => {
            assert_eq!(line.race, results::wire::RaceWord::Unknown, "{line:?}");
        }
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn the_catalogue_lists_the_names_in_requests() {
    let PlaygroundAnswer::Catalogue(catalogue) = answer(&PlaygroundRequest::Catalogue {}) else {
        panic!("no catalogue")
    };
    assert!(catalogue.models.iter().any(|model| model.name == "vulkan"));
    assert_eq!(catalogue.tests.len(), corpus::tests().len());
    assert!(catalogue.faults.iter().all(|fault| fault.name.parse::<sim::Fault>().is_ok()));
    for id in catalogue.tests.iter().take(3) {
        let answer = answer(&PlaygroundRequest::Test { id: id.clone() });
        assert!(matches!(answer, PlaygroundAnswer::Test { .. }), "{answer:?}");
    }
    assert_eq!(mistakes(answer(&PlaygroundRequest::Test { id: "none".to_owned() })).len(), 1);
}

/// Invocations read the elements of their neighbours, without a barrier.
const NEIGHBOUR: &str = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3<u32>) {
    tile[i] = data[id.x];
    data[id.x] = tile[(i + 1u) % 64u];
}
";

fn shader(text: &str) -> PlaygroundShader {
    let language = PlaygroundLanguage::Wgsl;
    PlaygroundShader {
        text: text.to_owned(),
        language,
        grid: None,
        overrides: BTreeMap::new(),
        steps: None,
        trace: None,
    }
}

fn races(shader: PlaygroundShader) -> (Vec<RaceLine>, BTreeMap<String, String>, Vec<PlaygroundFix>) {
    match answer(&PlaygroundRequest::Races(shader)) {
        PlaygroundAnswer::Races { lines, assumed, fixes, .. } => (lines, assumed, fixes),
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn the_race_of_a_shader_has_a_fix_that_removes_it() {
    let (lines, _, fixes) = races(shader(NEIGHBOUR));
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(line.verdict, RaceVerdict::Racy);
    let mut at: Vec<Option<u32>> = line.findings[0].at.iter().map(|at| at.line).collect();
    at.sort();
    assert_eq!(at, [Some(5), Some(6)], "{line:?}");
    assert!(line.findings[0].at.iter().all(|at| at.invocation.is_some() && at.access.is_some()), "{line:?}");
    let [fix] = &fixes[..] else { panic!("{fixes:?}") };
    assert!(fix.text.contains("\n    workgroupBarrier();\n    data[id.x]"), "{}", fix.text);
    let (fixed, ..) = races(shader(&fix.text));
    assert_eq!((fixed[0].verdict, fixed[0].findings.len()), (RaceVerdict::Clean, 0), "{fixed:?}");
}

#[test]
fn shaders_have_limits_and_placed_mistakes() {
    let rejected = |text: &str| mistakes(answer(&PlaygroundRequest::Races(shader(text))));
    let found = rejected(&NEIGHBOUR.replace("data[id.x];", "dato[id.x];"));
    assert_eq!((found[0].line, found[0].column), (5, 15), "{found:?}");
    assert!(rejected(&"x".repeat(2 << 20))[0].error.contains("bytes"));
    let (_, assumed, _) = races(shader("override n: u32;\n@compute @workgroup_size(n) fn main() {}"));
    assert_eq!(assumed.get("n").map(String::as_str), Some("64"));
    // With a limit of 0 steps there is no answer.
    let (lines, ..) = races(PlaygroundShader { steps: Some(0), ..shader(NEIGHBOUR) });
    assert_eq!(lines[0].verdict, RaceVerdict::Undecided, "{lines:?}");
    let text = PlaygroundShader { language: PlaygroundLanguage::Spirv, ..shader("OpNothing") };
    let (lines, ..) = races(text);
    assert_eq!(lines[0].verdict, RaceVerdict::Refused, "{lines:?}");
}

#[test]
fn device_requests_are_for_the_server() {
    let error = &mistakes(answer(&PlaygroundRequest::Devices {}))[0].error;
    assert!(error.contains("vk-litmus serve"), "{error}");
}

#[test]
fn tests_that_wgsl_can_express_become_valid_kernels() {
    let (mut kernels, mut refusals) = (0, 0);
    for test in corpus::tests() {
        match answer(&PlaygroundRequest::Kernel(question(test.text))) {
            PlaygroundAnswer::Kernel(kernel) => {
                let none = OverrideValues::default();
                let compiled = shader_source::wgsl::compile("kernel.wgsl", &kernel.source, &none);
                assert!(compiled.is_ok(), "{}: {compiled:?}\n{}", test.id, kernel.source);
                assert!(!kernel.observables.is_empty() && kernel.locations > 0, "{}", test.id);
                kernels += 1;
            }
            PlaygroundAnswer::Rejected { mistakes } => {
                assert!(mistakes[0].error.starts_with("WGSL cannot express this test: "), "{mistakes:?}");
                refusals += 1;
            }
            answer => panic!("{}: {answer:?}", test.id),
        }
    }
    assert!(kernels > 30 && refusals > 100, "{kernels} kernels, {refusals} refusals");
}

#[test]
fn features_without_wgsl_are_refused_by_name() {
    let error = |id: &str| {
        let text = corpus::tests().into_iter().find(|test| test.id == id).unwrap().text;
        mistakes(answer(&PlaygroundRequest::Kernel(question(text))))[0].error.clone()
    };
    for (id, part) in [
        ("mp/MP+rel-acq", "atomics of WGSL are relaxed"),
        ("mp/MP+fence-fence", "no memory barrier"),
        ("mp/MP+rel-acq.spin", "plain accesses of WGSL reach no other workgroup"),
    ] {
        assert!(error(id).contains(part), "{id}: {}", error(id));
    }
}

/// A location without accesses has its initial value, not the marker of missing results.
#[test]
fn observed_locations_without_accesses_have_their_initial_values() {
    let text = "VULKAN unused\n{ x = 0; y = 7; }\nP0@sg 0, wg 0, qf 0 ;\nst.atom.qf.sc0 x, 1 ;\nexists (x == 1 /\\ y == 7)\n";
    let PlaygroundAnswer::Kernel(kernel) = answer(&PlaygroundRequest::Kernel(question(text))) else {
        panic!("no kernel")
    };
    assert_eq!(kernel.observables, ["x", "y"]);
    assert!(kernel.source.contains("results[i * 2u + 1u] = 7u;"), "{}", kernel.source);
    let undefined = text.replace("y = 7;", "y = ?;");
    let error = &mistakes(answer(&PlaygroundRequest::Kernel(question(&undefined))))[0].error;
    assert!(error.contains("`y` is observed"), "{error}");
}

#[test]
fn the_tour_names_embedded_tests() {
    let tour = web::PAGE_FILES.iter().find(|file| file.name == "tour.js").unwrap();
    let steps: Vec<&str> = std::str::from_utf8(tour.bytes)
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("  [\"")?.split('"').next())
        .collect();
    assert_eq!(steps.len(), 10);
    for id in steps {
        assert!(corpus::tests().iter().any(|test| test.id == id), "{id}");
    }
}

/// Returns the text without the mark `§`, and its position in UTF-16 code units.
fn document(language: PlaygroundTextLanguage, marked: &str) -> (PlaygroundText, u32) {
    let (before, after) = marked.split_once('§').unwrap();
    let text = format!("{before}{after}");
    (PlaygroundText { language, text }, before.encode_utf16().count() as u32)
}

#[test]
fn the_editor_has_problems_words_and_meanings() {
    use PlaygroundTextLanguage::{Cat, Litmus};
    let (wrong, at) = document(
        Litmus,
        "VULKAN 🦀\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 ;\nst.§atmo.dv.sc0 x, 1 ;\nexists (x == 1)\n",
    );
    let PlaygroundAnswer::Problems { problems } = answer(&PlaygroundRequest::Problems(wrong)) else {
        panic!()
    };
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert_eq!((problem.from, problem.to, problem.severity), (at, at + 4, PlaygroundSeverity::Error));
    let titles: Vec<&str> = problem.corrections.iter().map(|correction| correction.title.as_str()).collect();
    assert_eq!(titles, ["Replace by `atom`"]);

    let (wrong, at) = document(Cat, "VULKAN\nacyclic po | §rff as order\n");
    let PlaygroundAnswer::Problems { problems } = answer(&PlaygroundRequest::Problems(wrong)) else {
        panic!()
    };
    assert_eq!((problems[0].from, problems[0].to), (at, at + 3), "{problems:?}");

    for (language, text, word) in
        [(Litmus, "V A\n{ x = 0; }\nP0@sg 0 ;\nst.av.d§", "dv"), (Cat, "let mine = rf\nempty mi§", "mine")]
    {
        let (document, offset) = document(language, text);
        match answer(&PlaygroundRequest::Complete { document, offset }) {
            PlaygroundAnswer::Completions { to, words, .. } => {
                assert_eq!(to, offset);
                assert!(words.iter().any(|known| known.name == word), "{word}: {words:?}");
            }
            answer => panic!("{answer:?}"),
        }
    }

    for (language, text, expected) in [
        (Litmus, "VULKAN 🦀\nclause: VK-SW§-01\n", Some("**VK-SW-01** (vulkan)")),
        (Cat, "empty r§f & co", Some("**rf**: reads-from")),
        (Cat, "empty x§y & co", None),
    ] {
        let (document, offset) = document(language, text);
        match answer(&PlaygroundRequest::Meaning { document, offset }) {
            PlaygroundAnswer::Meaning { from, to, markdown } => {
                assert!(from <= offset && offset <= to);
                assert_eq!(markdown.is_some(), expected.is_some(), "{text}");
                assert!(markdown.is_none_or(|text| expected.is_some_and(|start| text.starts_with(start))));
            }
            answer => panic!("{answer:?}"),
        }
    }
}

#[test]
fn executions_of_an_outcome_are_listed() {
    // The order of the two writes is open, because no read returns them.
    let text = "VULKAN W\n{ x = 0; }\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 0, wg 2, qf 0 ;\n\
        st.atom.dv.sc0 x, 1 | st.atom.dv.sc0 x, 2 | ld.atom.dv.sc0 r0, x ;\nexists (P2:r0 == 0)\n";
    let executions = |outcome: &str| {
        let question = question(text);
        match answer(&PlaygroundRequest::Executions { question, outcome: Some(outcome.to_owned()) }) {
            PlaygroundAnswer::Executions { executions, complete } => (executions, complete),
            answer => panic!("{answer:?}"),
        }
    };
    let (found, complete) = executions("P2:r0 == 0");
    assert_eq!((found.len(), complete), (2, true));
    assert!(
        found[0].title.starts_with("Execution 1 of 2: ") && found[1].picture.contains("<svg"),
        "{found:?}"
    );
    assert_ne!(found[0].text, found[1].text);
    assert_eq!(executions("P2:r0 == 3"), (Vec::new(), true));
}

#[test]
fn instructions_vary_and_stay_tests() {
    let text = corpus::tests().into_iter().find(|test| test.id == "mp/MP+rel-acq").unwrap().text;
    let offset = text.find("ld.atom.acq").unwrap() as u32;
    let PlaygroundAnswer::Variations { variations } =
        answer(&PlaygroundRequest::Vary { text: text.to_owned(), offset })
    else {
        panic!()
    };
    let relaxed = variations.iter().find(|one| one.instruction == "ld.atom.dv.sc0 r0, f").unwrap();
    assert_eq!((relaxed.part.as_str(), relaxed.edits.len()), ("memory order", 1));
    let edit = &relaxed.edits[0];
    let changed = [&text[..edit.from as usize], &edit.insert, &text[edit.to as usize..]].concat();
    let PlaygroundAnswer::Check { line, .. } = answer(&PlaygroundRequest::Check(question(&changed))) else {
        panic!()
    };
    assert!(line.outcomes.iter().any(|outcome| outcome.weak && outcome.allowed), "{line:?}");
}

#[test]
fn a_cat_model_replaces_a_shipped_one() {
    let text = corpus::tests().into_iter().find(|test| test.id == "sb/SB+rlx-rlx").unwrap().text;
    let PlaygroundAnswer::Model { text: cat, .. } =
        answer(&PlaygroundRequest::Model { name: "sc".to_owned() })
    else {
        panic!()
    };
    let check = |question: PlaygroundQuestion| match answer(&PlaygroundRequest::Check(question)) {
        PlaygroundAnswer::Check { line, .. } => line.outcomes,
        answer => panic!("{answer:?}"),
    };
    let with_cat = PlaygroundQuestion { cat: Some(cat.clone()), ..question(text) };
    let shipped = PlaygroundQuestion { model: Some("sc".to_owned()), ..question(text) };
    assert_eq!(check(with_cat), check(shipped));
    let wrong = PlaygroundQuestion { cat: Some(cat + "\nempty nonsense\n"), ..question(text) };
    let found = mistakes(answer(&PlaygroundRequest::Check(wrong)));
    assert!(found[0].file.starts_with("model.cat") && found[0].error.contains("nonsense"), "{found:?}");
    let unknown = mistakes(answer(&PlaygroundRequest::Model { name: "vulcan".to_owned() }));
    assert!(unknown[0].error.contains("unknown model `vulcan`"), "{unknown:?}");
}
