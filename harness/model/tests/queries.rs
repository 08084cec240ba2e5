//! Queries of `.test` files: forced values, and differences between the Alloy model and the text.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use model::{Model, PredictOptions, answer_queries};

/// Returns true for each query of a file that holds under a shipped model; NOCHAINS lines use the same model.
fn query_answers(text: &str, name: &str) -> Vec<Option<bool>> {
    let test = litmus::parse(text, "t.test").unwrap_or_else(|errors| panic!("{:?}", errors.messages()));
    let model = Model::shipped(name).unwrap().unwrap();
    answer_queries(&test, &model, Some(&model), &PredictOptions::default()).unwrap()
}

fn assert_answers(text: &str, name: &str, expected: &[bool]) {
    let expected: Vec<Option<bool>> = expected.iter().copied().map(Some).collect();
    assert_eq!(query_answers(text, name), expected, "{name}\n{text}");
}

/// D2: mutual order that is not transitive. A transitive order of the three stores would include the pair
/// that is not mutually ordered, so the Alloy model has no consistent execution of a race-free program.
#[test]
fn only_the_alloy_model_has_a_transitive_modification_order() {
    let text = "NEWTHREAD 0
st.atom.scopewg.sc0 x = 1
st.atom.rel.scopedev.sc0.semsc0.semav f = 1
NEWSG
NEWTHREAD 1
ld.atom.acq.scopedev.sc0.semsc0 f = 1
st.atom.scopedev.sc0 x = 2
st.atom.rel.scopedev.sc0.semsc0 g = 1
NEWWG
NEWSG
NEWTHREAD 2
ld.atom.acq.scopedev.sc0.semsc0 g = 1
st.atom.scopedev.sc0 x = 3
SATISFIABLE consistent[X] && #dr=0
NOSOLUTION consistent[X] && #dr>0
SATISFIABLE #rs>0
";
    assert_answers(text, "vulkan", &[true, true, true]);
    assert_answers(text, "khronos-alloy", &[false, true, true]);
}

/// D8: a read-modify-write whose write is ordered and whose read is not.
#[test]
fn a_fused_read_modify_write_needs_only_the_order_of_its_write() {
    let text = "NEWTHREAD 0
st.av.scopedev.sc0 x = 1
st.atom.rel.scopedev.sc0.semsc0 f = 1
NEWWG
NEWSG
NEWTHREAD 1
ld.atom.acq.scopedev.sc0.semsc0 f = 1
rmw.scopewg.sc0 x = 1 2
SATISFIABLE consistent[X] && #dr=0
NOSOLUTION consistent[X] && #dr>0
SATISFIABLE #rs=1
";
    assert_answers(text, "khronos-alloy", &[true, true, true]);
    assert_answers(text, "vulkan", &[false, false, true]);
}

/// A release sequence includes the release itself, and two consecutive read-modify-writes.
#[test]
fn release_sequences_include_their_heads() {
    let text = "NEWTHREAD 0
st.atom.rel.scopewg.sc0.semsc0 x = 1
NEWTHREAD 1
rmw.scopewg.sc0 x = 1 2
rmw.scopewg.sc0 x = 2 3
SATISFIABLE consistent[X] && #rs=3
NOSOLUTION consistent[X] && #rs!=3
SATISFIABLE #rs<3
";
    for name in ["khronos-alloy", "vulkan", "dartagnan"] {
        assert_answers(text, name, &[true, true, true]);
    }
}

#[test]
fn values_only_constrain_reads_from() {
    let cases = [
        // An omitted value equals another omitted one, even if that is inconsistent.
        ("ld.sc0 x\nst.sc0 x", true),
        ("ld.sc0 x\nst.sc0 x = 1", false),
        // No thread stores the value, so the read is unconstrained.
        ("ld.sc0 x = 7\nst.sc0 x = 1", false),
        // Two writes of the value.
        ("st.sc0 x = 1\nst.sc0 x = 1\nld.sc0 x = 1", true),
        ("st.sc0 x = 0\nld.sc0 x = 0", true),
        // The initial value, although there is an earlier store.
        ("st.sc0 x = 1\nld.sc0 x = 0", true),
        ("ld.sc0 x = 0\nst.sc0 x = 1", false),
        // A value does not constrain reads through another name of the location.
        ("SLOC x y\nst.sc0 y = 1\nld.sc0 x = 1", false),
        // A read-modify-write that would read from itself.
        ("rmw.scopewg.sc0 x = 1 1", true),
        ("rmw.scopewg.sc0 x", true),
        ("rmw.scopewg.sc0 x = 0 1", false),
    ];
    for (program, contradictory) in cases {
        let text = format!("NEWTHREAD\n{program}\nNOSOLUTION consistent[X]\nSATISFIABLE consistent[X]\n");
        for name in ["khronos-alloy", "vulkan", "dartagnan"] {
            assert_answers(&text, name, &[contradictory, !contradictory]);
        }
    }
}

/// `consistent[X]` is an ordinary term.
#[test]
fn inconsistent_executions_count_without_a_consistency_term() {
    let text = "NEWTHREAD\nld.sc0 x\nst.sc0 x\nSATISFIABLE #dr=0\nSATISFIABLE consistent[X] && #dr=0\n";
    assert_answers(text, "khronos-alloy", &[true, false]);
    assert_answers(text, "vulkan", &[true, false]);
}

#[test]
fn undecidable_queries_have_no_answer() {
    let text = "NEWTHREAD\nst.sc0 x = 1\nSATISFIABLE NOCHAINS consistent[X]\nSATISFIABLE consistent[X]\n";
    let test = litmus::parse(text, "t.test").unwrap();
    let vulkan = Model::shipped("vulkan").unwrap().unwrap();
    let answers = answer_queries(&test, &vulkan, None, &PredictOptions::default()).unwrap();
    assert_eq!(answers, [None, Some(true)]);
    // Sequential consistency has no race condition.
    let races = text.replace("consistent[X]", "#dr=0");
    assert_eq!(self::query_answers(&races, "sc"), [None, None]);
}
