//! Programs with answers that were derived from the text by hand.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests")]

use litmus::Test;
use witness::{Races, SearchBounds, TextProfile, UnsupportedTest, WitnessAnswer, judge};

fn parse(text: &str) -> Test {
    litmus::parse(text, "known.litmus").unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn judge_within(test: &Test, bound: u32) -> WitnessAnswer {
    let options = SearchBounds { loop_bound: bound, ..SearchBounds::default() };
    judge(test, TextProfile::LATEST, &options).unwrap_or_else(|refusal| panic!("{}: {refusal}", test.name))
}

/// Returns `Some` if an allowed outcome meets the condition, with true if it is only allowed out of thin air.
fn condition_answer(test: &Test, answer: &WitnessAnswer) -> Option<bool> {
    let condition = &test.question.as_ref().unwrap().condition;
    let observables = test.observables();
    let meets = |outcome: &litmus::Outcome| outcome.meets_condition(test, &observables, condition);
    let marks = answer.outcomes.iter().filter(|(outcome, _)| meets(outcome)).map(|(_, thin_air)| *thin_air);
    marks.reduce(|all, mark| all && mark)
}

macro_rules! known {
    ($($name:ident: $file:literal $bound:literal $races:ident $reached:expr;)*) => {$(
        #[test]
        fn $name() {
            let test = parse(include_str!(concat!("known/", $file, ".litmus")));
            let answer = judge_within(&test, $bound);
            assert_eq!(answer.races, Races::$races);
            assert_eq!(condition_answer(&test, &answer), $reached);
        }
    )*};
}

known! {
    a_link_needs_happens_before_by_any_mask: "c32min" 1 Never None;
    scopes_of_two_kinds_reach_each_other: "callsg2" 1 Never Some(false);
    visibility_to_a_subgroup_takes_from_its_workgroup: "eq1" 1 Never None;
    system_synchronization_joins_a_chain: "eq3" 1 Never None;
    a_fence_alone_is_no_link: "fencelink" 1 Sometimes Some(false);
    a_read_modify_write_alone_is_no_link: "rmwlink" 1 Sometimes Some(false);
    the_second_turn_of_a_loop_races: "loopunsound" 2 Sometimes Some(false);
    what_is_not_awaited_races: "ni" 1 Sometimes None;
    values_known_by_control_are_allowed: "oota_ctrl" 1 Never Some(true);
    values_forwarded_from_a_store_are_allowed: "oota_fwd" 1 Never Some(true);
    the_last_link_reaches_all_domains_of_its_scope: "narrow" 1 Never None;
    a_write_follows_a_write_through_the_device_domain: "wawdev" 1 Never None;
    a_signed_byte_is_sign_extended: "../../../../cli/tests/all/cases/files/extend-i8" 1 Never None;
    an_unsigned_byte_is_zero_extended: "../../../../cli/tests/all/cases/files/extend-u8" 1 Never None;
}

#[test]
fn a_loop_that_does_not_end_within_the_bound_is_cut() {
    let test = parse(include_str!("known/loopunsound.litmus"));
    let short = judge_within(&test, 1);
    assert!(short.is_truncated && short.outcomes.is_empty());
    assert!(judge_within(&test, 2).is_truncated);
    let endless = parse("VULKAN t { x = 0; } P0@sg 0, wg 0, qf 0 ; LC00: ; st.sc0 x, 1 ; goto LC00 ;");
    assert_eq!(judge(&endless, TextProfile::LATEST, &SearchBounds::default()), Err(UnsupportedTest::Endless));
}
