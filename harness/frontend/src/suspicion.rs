//! Whether some execution comes to where something would be wrong.
//!
//! The walk takes every value that anybody may store for one that a read may give, so that it comes to places that no execution comes to:
//! an index that is one too large, a case of a switch that never is. The model is asked of each, of a test in which whoever comes there
//! stops and says so.

use litmus::{
    Comparison, Condition, Flow, Instruction, InstructionKind, Label, LabelId, Question, QuestionKind,
    RegisterId, Span, Term, Test, ThreadId,
};
use model::{Budget, Model, Options, predict};

use crate::emit;
use crate::lift::{Case, Finding, Lifted};
use crate::walk::COUNT;

/// Steps for one of them.
const STEPS: u64 = 50_000;

/// What the walk found, and those suspicions that some execution bears out; and whether the model has no answer for others: in its bounds,
/// or within its steps.
pub(crate) fn confirmed(lifted: &Lifted, model: &Model, budget: Budget<'_>) -> (Vec<Finding>, bool) {
    let mut all = lifted.findings.clone();
    let mut open = false;
    for case in &lifted.cases {
        for (index, finding) in case.suspicions.iter().enumerate() {
            if all.contains(finding) {
                continue;
            }
            let Some(thread) = finding.at.first().map(|spot| spot.thread) else { continue };
            let options = Options { budget: budget.at_most(STEPS), unroll: 1 };
            let comes = predict(&coming(case, thread, index), model, &options).map(|said| said.meets);
            match comes {
                Ok(Some(true)) => all.push(finding.clone()),
                Ok(Some(false)) => {}
                Ok(None) | Err(_) => open = true,
            }
        }
    }
    all.sort();
    (all, open)
}

/// The test in which it is asked whether a thread comes to a suspicion. Every beginning of a run shows where it leads, so that nobody waits:
/// who would repeat a loop is done.
fn coming(case: &Case, suspected: u16, index: usize) -> Test {
    let mut test = case.test.clone();
    test.filter = None;
    for (number, thread) in test.threads.iter_mut().enumerate() {
        let end = LabelId(thread.labels.len() as u16);
        thread.labels.push(Label { name: format!("LC{:02}", thread.labels.len()) });
        let code = std::mem::take(&mut thread.instructions);
        let mut passed: Vec<LabelId> = Vec::new();
        for mut instruction in code {
            let here = |kind| Instruction { kind, span: Span::default() };
            if emit::suspicion_of(&instruction.kind)
                .is_some_and(|own| own == index && number == usize::from(suspected))
            {
                thread.instructions.push(here(emit::assign(COUNT, FOUND as u64)));
                instruction.kind = emit::go_to(end.0);
            } else if emit::jump_of(&instruction.kind).is_some_and(|target| passed.contains(&target)) {
                instruction.kind = emit::go_to(end.0);
            }
            if let InstructionKind::Flow(Flow::Label(label)) = &instruction.kind {
                passed.push(*label);
            }
            thread.instructions.push(instruction);
        }
        let last = InstructionKind::Flow(Flow::Label(end));
        thread.instructions.push(Instruction { kind: last, span: Span::default() });
    }
    let count = Term::Register(ThreadId(suspected), RegisterId(COUNT));
    let condition =
        Condition::Compare { left: count, comparison: Comparison::Equal, right: Term::Constant(FOUND) };
    test.question = Some(Question { kind: QuestionKind::Exists, condition, span: Span::default() });
    test
}

/// What the register holds then: more than any that only counts.
const FOUND: i64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lift::{FindingKind, Options as LiftOptions, lift};

    /// A lock with a slot for each invocation, and the same with a slot too few.
    const WHOLE: &str = include_str!("../../cli/tests/all/shaders/annotated/lock-array.spvasm");
    const SHORT: &str = include_str!("../../cli/tests/all/shaders/annotated/lock-array-short.spvasm");

    /// Whether an access beyond an end is told, and whether something stays open.
    fn out_of_bounds(text: &str, budget: Budget<'_>) -> (bool, bool) {
        let module = crate::read(text.as_bytes()).unwrap();
        let lifted = lift(&module, &LiftOptions::default()).unwrap();
        let model = Model::shipped("vulkan").unwrap().unwrap();
        let (found, open) = confirmed(&lifted, &model, budget);
        (found.iter().any(|finding| finding.kind == FindingKind::OutOfBounds), open)
    }

    #[test]
    fn what_no_execution_comes_to_is_not_told() {
        assert_eq!(out_of_bounds(WHOLE, Budget::default()), (false, false));
        assert_eq!(out_of_bounds(SHORT, Budget::default()), (true, false));
    }

    #[test]
    fn what_the_model_has_no_answer_for_stays_open() {
        let stopped = || true;
        assert_eq!(out_of_bounds(WHOLE, Budget::until(&stopped)), (false, true));
    }
}
