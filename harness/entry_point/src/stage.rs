//! Limits of kernels of a shader stage, and the inputs of its invocations.

use spirv_reader::{BarrierPart, SourcePosition, SpirvModule, SpirvOperation, Stage};

use crate::error::{Problem, Refusal, unsupported};

/// Returns an invocation's `size` bytes of the given input, which repeats if it is too short.
pub fn invocation_share(all: &[u8], size: u64, invocation: u32) -> Option<&[u8]> {
    let size = usize::try_from(size).ok().filter(|size| *size > 0)?;
    let count = all.len() / size;
    let first = (invocation as usize).checked_rem(count)? * size;
    all.get(first..first + size)
}

/// Checks that an entry point's functions use nothing that its stage leaves unspecified.
///
/// # Errors
/// Returns the first such instruction with its position.
pub fn check_stage(module: &SpirvModule, stage: Stage, grid: Option<[u32; 3]>) -> Result<(), Refusal> {
    let word = match stage {
        Stage::Compute | Stage::Task | Stage::Mesh => return Ok(()),
        Stage::Vertex => "vertex",
        Stage::Fragment => "fragment",
    };
    if stage == Stage::Vertex && grid.is_some_and(|[.., z]| z != 1) {
        let what = "a grid of vertices counts vertices and instances: its third number is 1".to_owned();
        return Err(Problem::Annotation(what).located_at(SourcePosition::Module));
    }
    for function in module.functions.values() {
        for instruction in &function.code {
            let what = match module.operation(instruction) {
                SpirvOperation::ControlBarrier { part: BarrierPart::Whole, .. } => {
                    format!(
                        "a control barrier in a {word} shader (no workgroups: VUID-StandaloneSpirv-None-04637)"
                    )
                }
                SpirvOperation::Subgroup(_) | SpirvOperation::BallotQuery { .. } => {
                    format!(
                        "Op{:?} in a {word} shader: the invocations of a subgroup are unknown before \
                         execution",
                        instruction.op
                    )
                }
                _ => continue,
            };
            let line = module.source_line(instruction.line);
            return Err(unsupported(what)
                .located_at(line.map_or(instruction.place, |line| SourcePosition::Line(line.line))));
        }
    }
    Ok(())
}
