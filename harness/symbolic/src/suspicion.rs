//! Checks by reachability queries whether a suspected defect occurs in some execution.
//!
//! Symbolic execution over-approximates the values that a read may return. So it reaches infeasible
//! positions, such as an index that is one too large. For each suspicion the model decides whether some
//! execution reaches its mark.

use litmus::{
    Comparison, Condition, Flow, Instruction, InstructionKind, Label, LabelId, Question, QuestionKind,
    RegisterId, Span, Term, Test, ThreadId,
};
use model::{Budget, Model, PredictOptions, predict};

use crate::emit::{self, COUNT_REGISTER};
use crate::lifted::{Lifted, LiftedCase};
use entry_point::LiftFinding;

/// Model steps for one suspicion.
const MODEL_STEPS: u64 = 50_000;

/// Returns the certain findings and the confirmed suspicions.
///
/// The flag is true if the model could not decide some suspicion within its bounds.
pub fn confirm_suspicions(lifted: &Lifted, model: &Model, budget: Budget<'_>) -> (Vec<LiftFinding>, bool) {
    let mut all = lifted.findings.clone();
    let mut is_undecided = false;
    for case in &lifted.cases {
        for (index, finding) in case.suspicions.iter().enumerate() {
            if all.contains(finding) {
                continue;
            }
            let Some(thread) = finding.at.first().map(|spot| spot.thread) else { continue };
            let options = PredictOptions { budget: budget.with_step_limit(MODEL_STEPS), unroll: 1 };
            let is_reached = predict(&build_reachability_test(case, thread, index), model, &options)
                .map(|prediction| prediction.can_meet_condition);
            match is_reached {
                Ok(Some(true)) => all.push(finding.clone()),
                Ok(Some(false)) => {}
                Ok(None) | Err(_) => is_undecided = true,
            }
        }
    }
    all.sort();
    (all, is_undecided)
}

/// Builds a test whose question is whether a thread reaches a suspicion.
///
/// Every thread stops at its first back edge or at the mark. A prefix of an execution is enough to reach the
/// mark, so no thread has to wait.
fn build_reachability_test(case: &LiftedCase, thread_index: u16, index: usize) -> Test {
    let mut test = case.test.clone();
    test.filter = None;
    for (number, thread) in test.threads.iter_mut().enumerate() {
        let end = LabelId(thread.labels.len() as u16);
        thread.labels.push(Label { name: format!("LC{:02}", thread.labels.len()) });
        let code = std::mem::take(&mut thread.instructions);
        let mut passed_labels: Vec<LabelId> = Vec::new();
        for mut instruction in code {
            let here = |kind| Instruction { kind, span: Span::default() };
            if emit::suspicion_of(&instruction.kind)
                .is_some_and(|own| own == index && number == usize::from(thread_index))
            {
                thread.instructions.push(here(emit::assign(COUNT_REGISTER, REACHED_MARK as u64)));
                instruction.kind = emit::jump(end.0);
            } else if emit::jump_of(&instruction.kind).is_some_and(|target| passed_labels.contains(&target)) {
                instruction.kind = emit::jump(end.0);
            }
            if let InstructionKind::Flow(Flow::Label(label)) = &instruction.kind {
                passed_labels.push(*label);
            }
            thread.instructions.push(instruction);
        }
        let last = InstructionKind::Flow(Flow::Label(end));
        thread.instructions.push(Instruction { kind: last, span: Span::default() });
    }
    let count = Term::Register(ThreadId(thread_index), RegisterId(COUNT_REGISTER));
    let condition = Condition::Compare {
        left: count,
        comparison: Comparison::Equal,
        right: Term::Constant(REACHED_MARK),
    };
    test.question = Some(Question { kind: QuestionKind::Exists, condition, span: Span::default() });
    test
}

/// The value of the register at the mark: above every count.
const REACHED_MARK: i64 = 2;
