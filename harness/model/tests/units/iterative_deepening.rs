//! Answers that hold at every length of a loop.

use std::sync::atomic::{AtomicU64, Ordering};

use litmus::Race;

use model::internals::STOP_POLL_INTERVAL;
use model::progress::{Fairness, ProgressLimits, ProgressModel, check_termination};
use model::{Budget, GrowingPrediction, Model, PredictOptions, predict_with_growing_bound};

fn predict(threads: &str) -> litmus::Prediction {
    let text = format!("VULKAN test\n{{ x = 0; f = 0; t = 0; }}\n{threads}");
    let test = litmus::parse(&text, "test").unwrap();
    let model = Model::shipped("vulkan").unwrap().unwrap();
    predict_with_growing_bound(&test, &model, &PredictOptions { budget: Budget::UNLIMITED, unroll: 1 })
        .unwrap()
}

/// The value of `r1` survives from the previous iteration, as one that each iteration replaces.
const WAIT: &str = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
LC00: | st.atom.dv.sc0 t, 1 ;
ld.atom.dv.sc0 r0, f | st.atom.dv.sc0 f, 1 ;
beq r0, 1, LC01 | ;
ld.atom.dv.sc0 r1, t | ;
goto LC00 | ;
LC01: | ;
";

#[test]
fn loop_that_leaves_an_unobserved_register_is_decided_at_every_length() {
    let decided = predict(&format!("{WAIT}exists (P0:r0 != 1)"));
    assert_eq!(
        (decided.race, decided.can_meet_condition, decided.truncated_runs),
        (Race::Free, Some(false), 0)
    );
    let observed = predict(&format!("{WAIT}exists (P0:r1 == 2)"));
    assert_eq!((observed.can_meet_condition, observed.truncated_runs), (Some(false), 0));
}

#[test]
fn program_of_ordered_atomics_is_race_free_at_every_length() {
    let swap = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
LC00: | LC10: ;
rmw.atom.dv.sc0 r0, x, 1 | rmw.atom.dv.sc0 r1, x, 0 ;
beq r0, 0, LC00 | beq r1, 1, LC10 ;
";
    let prediction = predict(&format!("{swap}exists (P0:r0 == 1)"));
    assert_eq!(
        (prediction.race, prediction.can_meet_condition, prediction.truncated_runs > 0),
        (Race::Free, Some(true), true)
    );
    let narrow = predict(&format!("{}exists (P0:r0 == 1)", swap.replace("dv", "wg")));
    assert_eq!(narrow.race, Race::Racy);
}

/// The read of `x` in the loop races with the store, which waits for code behind the loop.
#[test]
fn race_of_a_turn_that_only_reads_is_found() {
    let wait = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
LC00: | st.atom.dv.sc0 f, 1 ;
ld.atom.dv.sc0 r0, f | LC10: ;
beq r0, 1, LC01 | ld.atom.dv.sc0 r0, t ;
ld.nonpriv.sc0 r1, x | bne r0, 1, LC10 ;
goto LC00 | st.nonpriv.sc0 x, 1 ;
LC01: | ;
st.atom.dv.sc0 t, 1 | ;
";
    assert_eq!(predict(&format!("{wait}exists (P0:r0 == 1)")).race, Race::Racy);
}

/// A retry loop that stores a copy of `x` before each attempt, and a thread that changes `x` between them.
const RETRY: &str = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 0, wg 2, qf 0 ;
LC00: | st.atom.dv.sc0 x, 1 | ld.atom.dv.sc0 r0, f ;
ld.atom.dv.sc0 r0, x | st.atom.dv.sc0 x, 2 | ld.atom.dv.sc0 r1, f ;
st.atom.dv.sc0 f, r0 | st.atom.dv.sc0 x, 3 | READ ;
rmw.atom.dv.sc0.cas r1, x, r0, 9 | | ;
bne r1, r0, LC00 | | ;
";

/// A retry loop as in C: a failed attempt returns the value that the next one expects.
const CARRY: &str = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 0, wg 2, qf 0 ;
ld.atom.dv.sc0 r0, x | st.atom.dv.sc0 x, 1 | ld.atom.dv.sc0 r0, f ;
LC00: | st.atom.dv.sc0 x, 2 | ld.atom.dv.sc0 r1, f ;
add r2, r0, 0 | st.atom.dv.sc0 x, 3 | READ ;
st.atom.dv.sc0 f, r2 | | ;
rmw.atom.dv.sc0.cas r0, x, r2, 9 | | ;
bne r0, r2, LC00 | | ;
";

/// Each attempt stores a value that one of three reads may need.
#[test]
fn stores_of_failed_attempts_are_read() {
    for retry in [RETRY, CARRY] {
        let threads = retry.replace("READ", "ld.atom.dv.sc0 r2, f");
        let seen = predict(&format!("{threads}exists (P2:r0 == 1 /\\ P2:r1 == 2 /\\ P2:r2 == 3)"));
        assert_eq!((seen.race, seen.can_meet_condition), (Race::Free, Some(true)));
        let backwards = predict(&format!("{threads}exists (P2:r0 == 2 /\\ P2:r1 == 1)"));
        assert_eq!((backwards.can_meet_condition, backwards.truncated_runs), (Some(false), 0));
    }
}

/// Read-modify-writes need the stores of failed attempts like loads do.
#[test]
fn stores_of_failed_attempts_are_exchanged() {
    for retry in [RETRY, CARRY] {
        let threads = retry.replace("READ", "ld.atom.dv.sc0 r2, f").replace("ld.atom.dv.sc0 r1, f", "");
        let exchanges = |register| format!("rmw.atom.dv.sc0 {register}, f, 7");
        let threads = threads.replace("ld.atom.dv.sc0 r0, f", &exchanges("r0"));
        let threads = threads.replace("ld.atom.dv.sc0 r2, f", &exchanges("r2"));
        let seen = predict(&format!("{threads}exists (P2:r0 == 1 /\\ P2:r2 == 2)"));
        assert_eq!(seen.can_meet_condition, Some(true));
        let backwards = predict(&format!("{threads}exists (P2:r0 == 2 /\\ P2:r2 == 1)"));
        assert_eq!(backwards.can_meet_condition, Some(false));
    }
}

/// A turn that replaces a carried value is needed if the loop compares the values otherwise than for being unequal.
#[test]
fn successive_values_are_not_left_out() {
    let count = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
ld.atom.dv.sc0 r0, x | st.atom.dv.sc0 x, 1 ;
add r5, r0, 0 | st.atom.dv.sc0 x, 2 ;
LC00: | st.atom.dv.sc0 x, 3 ;
add r2, r0, 0 | ;
add r3, r2, 1 | ;
ld.atom.dv.sc0 r0, x | ;
beq r0, r3, LC00 | ;
";
    let climbed = predict(&format!("{count}exists (P0:r5 == 0 /\\ P0:r2 == 3)"));
    assert_eq!(climbed.can_meet_condition, Some(true));
    let skipped = predict(&format!("{count}exists (P0:r5 == 1 /\\ P0:r2 == 0)"));
    assert_ne!(skipped.can_meet_condition, Some(true));
}

/// The delay of a back-off has no effect, unless the question names it.
#[test]
fn delay_of_a_backoff_is_not_live() {
    let lock = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
LC00: | st.atom.dv.sc0 f, 1 ;
ld.atom.dv.sc0 r0, f | st.atom.dv.sc0 f, 0 ;
beq r0, 0, LC01 | ;
add r8, r8, r8 | ;
add r8, r8, 1 | ;
goto LC00 | ;
LC01: | ;
";
    let free = predict(&format!("{lock}exists (P0:r0 == 1)"));
    assert_eq!((free.can_meet_condition, free.truncated_runs), (Some(false), 0));
    let delayed = predict(&format!("{lock}exists (P0:r8 == 7)"));
    assert_eq!(delayed.can_meet_condition, Some(true));
}

/// Lifted code ends a path at its own loop bound with a loop that counts in a register: longer paths exist.
#[test]
fn loop_that_only_counts_is_a_cut() {
    let cut = predict(
        "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
rmw.atom.dv.sc0.cas r0, x, 0, 1 | rmw.atom.dv.sc0.cas r0, x, 0, 1 ;
beq r0, 0, LC01 | beq r0, 0, LC01 ;
LC00: | LC00: ;
add r1, r1, 1 | add r1, r1, 1 ;
goto LC00 | goto LC00 ;
LC01: | LC01: ;
st.atom.dv.sc0 x, 0 | st.atom.dv.sc0 x, 0 ;
forall (P0:r0 == 0 /\\ P1:r0 == 0)",
    );
    assert_eq!((cut.can_miss_condition, cut.truncated_runs > 0), (None, true));
}

/// The bound grows beyond 16 if that is cheap: each thread adds until it reads 16.
#[test]
fn threads_that_count_to_sixteen_are_decided() {
    let count = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
LC00: | LC00: ;
rmw.atom.dv.sc0.add r0, x, 1 | rmw.atom.dv.sc0.add r0, x, 1 ;
blt r0, 16, LC00 | blt r0, 16, LC00 ;
";
    let counted = predict(&format!("{count}exists (x == 16)"));
    assert_eq!((counted.can_meet_condition, counted.truncated_runs), (Some(false), 0));
    let overshot = predict(&format!("{count}exists (x == 18)"));
    assert_eq!(overshot.can_meet_condition, Some(true));
}

/// Loops without an exit cut runs at every bound, and only the race is unknown: a longer loop does not answer it.
#[test]
fn termination_is_decided_before_the_bound_grows() {
    let text = "VULKAN test
{ x = 0; }
P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 ;
LC00: | LC10: ;
ld.atom.wg.sc0 r0, x | rmw.atom.wg.sc0 r2, x, 1 ;
bne r0, 0, LC01 | bne r2, 0, LC11 ;
goto LC00 | goto LC10 ;
LC01: | LC11: ;
rmw.atom.wg.sc0 r1, x, 0 | ;
bne r1, 1, LC02 | ;
goto LC01 | ;
LC02: | ;
exists (0 == 0)";
    let test = litmus::parse(text, "test").unwrap();
    let model = Model::shipped("dartagnan").unwrap().unwrap();
    let budget = Budget::from_steps(1_000);
    let start = GrowingPrediction::start(&test, &model, &PredictOptions { budget, unroll: 1 }).unwrap();
    let fair: ProgressModel = "fair".parse().unwrap();
    let limits = ProgressLimits::with_budget(budget);
    let termination = check_termination(&test, &model, &fair, Fairness::Weak, &limits).unwrap();
    assert_eq!(termination.terminates, Some(false));
    let prediction = start.deepen();
    assert!(prediction.bound <= 2, "the bound grew to {}", prediction.bound);
    assert_eq!((prediction.race, prediction.can_meet_condition), (Race::Unknown, Some(true)));
}

/// Two threads that may repeat their turns for ever are cut at every bound, so the large ones are not tried.
#[test]
fn large_bounds_are_not_tried_for_infinite_runs() {
    let text =
        litmus::corpus::progress_tests().into_iter().find(|entry| entry.id.ends_with("livelock-lockstep"));
    let text = text.unwrap().text;
    let test = litmus::parse(text, "livelock-lockstep").unwrap();
    let model = Model::shipped("vulkan").unwrap().unwrap();
    let polls = AtomicU64::new(0);
    let stop = || polls.fetch_add(1, Ordering::Relaxed) * STOP_POLL_INTERVAL >= 10_000_000;
    let options = PredictOptions { budget: Budget::until(&stop), unroll: 1 };
    let prediction = predict_with_growing_bound(&test, &model, &options).unwrap();
    assert_eq!((prediction.bound, prediction.race), (8, Race::Free));
    let steps = polls.into_inner() * STOP_POLL_INTERVAL;
    assert!(steps < 2_000_000, "{steps} steps");
}
