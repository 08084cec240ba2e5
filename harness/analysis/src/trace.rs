//! The published steps of the invocations of a finding.

use entry_point::{AnalysisOptions, Refusal, source_location};
use results::wire::{TraceEffectRecord, TraceRecord, TraceStepRecord};
use spirv_reader::SpirvModule;
use walk::{FindingStep, GridFinding, StepEffect, trace_finding};

/// Upper bound on the steps of one schedule of a trace.
const MAX_TRACE_WALK: u64 = 50_000_000;

/// Returns the steps of the invocations of a finding, with its inputs; `None` if no schedule of the walk shows it.
///
/// # Errors
/// If the walk does not support the module.
pub fn trace_record(
    file: &str,
    module: &SpirvModule,
    options: &AnalysisOptions,
    finding: &GridFinding,
) -> Result<Option<TraceRecord>, Refusal> {
    let Some(trace) = trace_finding(module, options, finding, MAX_TRACE_WALK)? else { return Ok(None) };
    let effect = |effect: StepEffect| match effect {
        StepEffect::Variable { name, value } => TraceEffectRecord::Variable { name, value },
        StepEffect::Read { element, value } => TraceEffectRecord::Read { element, value },
        StepEffect::Write { element, before, after } => TraceEffectRecord::Write { element, before, after },
        StepEffect::Wait => TraceEffectRecord::Wait,
        StepEffect::End => TraceEffectRecord::End,
    };
    let step = |step: FindingStep| {
        let (file, line) = source_location(file, module, step.line, step.place);
        TraceStepRecord {
            invocation: step.invocation,
            file,
            line,
            effects: step.effects.into_iter().map(effect).collect(),
            seen: step.seen,
        }
    };
    Ok(Some(TraceRecord {
        invocations: trace.invocations.iter().map(ToString::to_string).collect(),
        steps: trace.steps.into_iter().map(step).collect(),
        is_cut_off: trace.is_cut_off,
    }))
}
