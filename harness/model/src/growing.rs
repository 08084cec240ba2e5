//! Iterative deepening of the loop bound until no run is cut off.

use litmus::{Prediction, QuestionKind, Race, Test};

use crate::budget::BudgetTracker;
use crate::conflict::has_only_ordered_accesses;
use crate::explore::ExplorationStrategy;
use crate::predict::predict_with_tracker;
use crate::{Model, Options, PredictError};

/// The largest loop bound.
const LARGEST: u32 = 8;

/// The largest loop bound while each takes few steps.
const LARGEST_CHEAP: u32 = 32;

/// Number of steps that a further loop bound may take to count as cheap.
const CHEAP_STEPS: u64 = 100_000;

/// As [`predict`](crate::predict), with a growing loop bound.
///
/// The bound starts at that of `options`. It doubles, up to 8, while runs are cut off and the budget lasts, and
/// up to 32 while that is cheap. It
/// stays if longer runs can change neither races nor the answer to the question. With a
/// question, outcomes are listed only if that costs about as much as the answer.
///
/// # Errors
///
/// As for [`predict`](crate::predict). If a larger loop bound exceeds the engine's limits, the last
/// successful bound gives the answer.
pub fn predict_growing(test: &Test, model: &Model, options: &Options) -> Result<Prediction, PredictError> {
    let purse = BudgetTracker::new(options.budget);
    let ways = match test.question {
        Some(_) => ExplorationStrategy::DECIDE_THEN_LIST,
        None => ExplorationStrategy::FULL,
    };
    let is_race_free = model.semantic().knows_text && has_only_ordered_accesses(test);
    let predict = |unroll| {
        let mut prediction = predict_with_tracker(test, model, unroll, ways, &purse)?;
        // Longer runs repeat the same accesses. A search without a loop bound that ran out of time stays unknown.
        if prediction.race == Race::Unknown && prediction.truncated_runs > 0 && is_race_free {
            prediction.race = Race::Free;
        }
        Ok::<Prediction, PredictError>(prediction)
    };
    let mut prediction = predict(options.unroll.max(1))?;
    let mut largest = LARGEST;
    while prediction.truncated_runs > 0
        && !is_answered(test, &prediction)
        && prediction.bound < largest
        && !purse.is_exhausted()
    {
        let before = purse.spent_steps();
        let Ok(next) = predict(prediction.bound * 2) else { break };
        let is_cheap = purse.spent_steps().saturating_sub(before) <= CHEAP_STEPS;
        largest = if is_cheap { LARGEST_CHEAP } else { LARGEST };
        // A search that was stopped early may have fewer findings than the last complete one.
        if purse.is_exhausted() {
            keep_found(&mut prediction, &next);
            break;
        }
        prediction = next;
    }
    Ok(prediction)
}

/// Returns true if the race and the answer to the question hold for all longer runs.
fn is_answered(test: &Test, prediction: &Prediction) -> bool {
    let is_question_answered = test.question.as_ref().is_some_and(|question| match question.kind {
        QuestionKind::Exists | QuestionKind::NotExists | QuestionKind::Final => {
            prediction.meets == Some(true)
        }
        QuestionKind::Forall => prediction.misses == Some(true),
    });
    prediction.race != Race::Unknown && is_question_answered
}

/// Adds the definite findings of a prediction that was cut short.
fn keep_found(prediction: &mut Prediction, partial: &Prediction) {
    if partial.race == Race::Racy {
        (prediction.race, prediction.race_thin_air) = (Race::Racy, false);
    }
    for (known, found) in [(&mut prediction.meets, partial.meets), (&mut prediction.misses, partial.misses)] {
        if found == Some(true) {
            *known = found;
        }
    }
}

#[cfg(test)]
mod tests {
    use litmus::Race;

    use super::predict_growing;
    use crate::{Budget, Model, Options};

    fn predict(threads: &str) -> litmus::Prediction {
        let text = format!("VULKAN test\n{{ x = 0; f = 0; t = 0; }}\n{threads}");
        let test = litmus::parse(&text, "test").unwrap();
        let model = Model::shipped("vulkan").unwrap().unwrap();
        predict_growing(&test, &model, &Options { budget: Budget::UNLIMITED, unroll: 1 }).unwrap()
    }

    /// The value of `r1` survives from the previous iteration, so no bound suffices for a list.
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
        assert_eq!((decided.race, decided.meets, decided.truncated_runs), (Race::Free, Some(false), 0));
        let observed = predict(&format!("{WAIT}exists (P0:r1 == 2)"));
        assert_eq!((observed.meets, observed.truncated_runs > 0), (None, true));
    }

    #[test]
    fn program_of_ordered_atomics_is_race_free_at_every_length() {
        let swap = "P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;
LC00: | LC10: ;
rmw.atom.dv.sc0 r0, x, 1 | rmw.atom.dv.sc0 r1, x, 0 ;
beq r0, 0, LC00 | beq r1, 1, LC10 ;
";
        let found = predict(&format!("{swap}exists (P0:r0 == 1)"));
        assert_eq!((found.race, found.meets, found.truncated_runs > 0), (Race::Free, Some(true), true));
        let narrow = predict(&format!("{}exists (P0:r0 == 1)", swap.replace("dv", "wg")));
        assert_eq!(narrow.race, Race::Racy);
    }
}
