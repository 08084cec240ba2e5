//! Races of a shader, as `race` publishes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use analysis::{AnalysisRequest, EntryAnswer, InputMode, ProofMode, RacePhase};
use entry_point::inputs::read_bound_module;
use entry_point::{AnalysisOptions, StopFunction};
use repair::{EditableSource, FixEdits, fix_edits};
use results::wire::{
    ChangeRecord, PlaygroundAnswer, PlaygroundFinding, PlaygroundFix, PlaygroundLanguage, PlaygroundShader,
    RaceLine, RaceVerdict, RejectedLine, TraceRecord,
};
use shader_source::scan::blank_comments;
use shader_source::wgsl;
use shader_source::wgsl::OverrideValues;
use spirv_reader::ShaderLanguage;
use walk::trace_finding;

use results::write::race::describe_coverage;

use crate::question::{mistake_without_position, shipped_model};

/// The most bytes of a shader.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Polls of the limit while interpreting, and while searching for inputs and fixes, unless the request has a limit:
/// some seconds.
const WALK_POLLS: u64 = 10_000;
/// Polls of the limit in the model, unless the request has a limit: some seconds.
const MODEL_POLLS: u64 = 20_000;

/// Finds races in each entry point of a shader.
pub fn find_races(shader: &PlaygroundShader) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    if shader.text.len() > MAX_TEXT_BYTES {
        return Err(mistake_without_position(format!(
            "the shader has {} bytes; expected at most {MAX_TEXT_BYTES}: shorten it",
            shader.text.len()
        )));
    }
    let model = shipped_model("vulkan")?;
    let given_overrides: Vec<(String, String)> = shader.overrides.clone().into_iter().collect();
    let (file, module, overrides) = match shader.language {
        PlaygroundLanguage::Wgsl => {
            let file = "shader.wgsl";
            let overrides = OverrideValues::from_source(&blank_comments(&shader.text), &given_overrides);
            let module = wgsl::compile(file, &shader.text, &overrides).map_err(|error| {
                let (line, column) = (error.line, error.column);
                vec![RejectedLine { file: file.to_owned(), error: error.message, line, column }]
            })?;
            (file, module, overrides)
        }
        PlaygroundLanguage::Glsl | PlaygroundLanguage::Hlsl => {
            return Err(mistake_without_position(
                "this page has a compiler for WGSL alone: use `vk-litmus serve` on a machine with compilers"
                    .to_owned(),
            ));
        }
        PlaygroundLanguage::Spirv => {
            ("shader.spvasm", shader.text.clone().into_bytes(), OverrideValues::default())
        }
    };
    let polls = |phase: RacePhase| {
        shader.steps.unwrap_or(match phase {
            RacePhase::InputSearch | RacePhase::Walks | RacePhase::Fixes => WALK_POLLS,
            RacePhase::Model | RacePhase::SmallestTest => MODEL_POLLS,
            // Its steps are limited.
            RacePhase::Entry | RacePhase::EntryWalks | RacePhase::Proof => u64::MAX,
        })
    };
    let options = AnalysisOptions {
        grid: shader.grid,
        language: (shader.language == PlaygroundLanguage::Wgsl).then_some(ShaderLanguage::Wgsl),
        unset_overrides: overrides.unset.clone(),
        ..AnalysisOptions::default()
    };
    // The overrides of a changed text are those of the text.
    let compile = |text: &str| wgsl::compile(file, text, &overrides).ok();
    let source = (shader.language == PlaygroundLanguage::Wgsl)
        .then_some(EditableSource { text: &shader.text, compile: &compile });
    let request = AnalysisRequest {
        file,
        inputs: InputMode::Auto,
        model: &model,
        start_limit: &|phase: RacePhase| count_polls(polls(phase)),
        creates_tests: false,
        proofs: ProofMode::Optional,
        solver: None,
        searches_fixes: true,
        source,
        save_inputs: None,
    };
    let answers = analysis::analyze_module(&request, &module, &options, &|_| {});
    let mut lines: Vec<RaceLine> = answers
        .into_iter()
        .map(|answer| RaceLine {
            trace: shader.trace.as_ref().and_then(|asked| trace(&module, &answer, asked)),
            ..answer.line
        })
        .collect();
    for line in &mut lines {
        if shader.language == PlaygroundLanguage::Wgsl {
            line.compiler = Some(wgsl::COMPILER.to_owned());
        }
        if line.verdict == RaceVerdict::Refused {
            line.cause = Some("not supported by the analysis".to_owned());
        }
    }
    let assumed = overrides.unset.into_iter().filter(|unset| !unset.value.is_default());
    let assumed = assumed.map(|unset| (unset.name, unset.value.value)).collect();
    Ok(races_answer(lines, file, &shader.text, assumed))
}

/// Returns the steps of a finding, if it is of this answer and a schedule of the walk shows it.
fn trace(module: &[u8], answer: &EntryAnswer, asked: &PlaygroundFinding) -> Option<TraceRecord> {
    let finding = answer.findings.get(asked.finding).filter(|_| asked.entry == answer.line.entry)?;
    let module = read_bound_module(module, &answer.options).ok()?;
    trace_finding(&answer.line.file, &module, &answer.options, finding).ok()?
}

/// Returns the answer to a request for races: the lines of `race` for a file, with their fixes as texts.
pub fn races_answer(
    lines: Vec<RaceLine>,
    file: &str,
    text: &str,
    assumed: BTreeMap<String, String>,
) -> PlaygroundAnswer {
    let fixes = lines.iter().flat_map(|line| line_fixes(line, file, text)).collect();
    let coverage = lines.iter().map(|line| describe_coverage(line).unwrap_or_default()).collect();
    PlaygroundAnswer::Races { lines, coverage, assumed, fixes }
}

/// Returns a function that is true from a number of calls on. It has no clock, so that a text has one answer.
fn count_polls(max_polls: u64) -> StopFunction {
    let polls = AtomicU64::new(0);
    Arc::new(move || polls.fetch_add(1, Ordering::Relaxed) >= max_polls)
}

/// Returns the fixes of a line that are edits of the text. Each has the changes of those before it, without
/// which it was not tried.
fn line_fixes(line: &RaceLine, file: &str, text: &str) -> Vec<PlaygroundFix> {
    let mut changes: Vec<ChangeRecord> = Vec::new();
    let mut fixes = Vec::new();
    for (finding, index) in line.findings.iter().zip(0..) {
        if finding.changes().is_empty() {
            continue;
        }
        let new = finding.changes().iter().filter(|change| !changes.contains(change));
        changes.extend(new.cloned().collect::<Vec<_>>());
        let is_here = |named: &Option<String>| named.as_deref().is_none_or(|named| named == file);
        let Some(edits) = fix_edits(&changes, is_here, text) else { break };
        let FixEdits { title, .. } = &edits;
        fixes.push(PlaygroundFix {
            entry: line.entry.clone(),
            finding: index,
            title: title.clone(),
            text: edits.apply(text),
        });
    }
    fixes
}
