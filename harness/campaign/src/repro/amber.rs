//! A test as an Amber script, in the form of the tests of VK-GL-CTS.
//!
//! One dispatch or draw runs many instances, and the shader counts the outcomes that the model forbids: the script expects none,
//! and that every instance ended.

use std::fmt::Write as _;

use litmus::convert::to_vulkan;
use litmus::glsl::{CountWord, CountingStage, GlslBuffer, GlslShader, to_counting_glsl};
use results::answer::answer_question;
use results::read::Results;
use runner::RunVariant;
use shaders::Variant;
use shaders::variant::CarrierStage;

use super::{ReproOptions, ReproSubject, load_model, predict_subject, select_recorded};
use crate::Failure;
use crate::inputs::load_single_test;

/// The number of instances of a script.
const INSTANCES: u32 = 1024;

/// Returns a test as an Amber script.
///
/// # Errors
/// If the test is invalid, GLSL cannot express it, or the model allows both answers to its question.
pub fn create_amber_script(
    request: &ReproOptions<'_>,
    results: Option<&[Results]>,
) -> Result<String, Failure> {
    let (loaded, recorded) = match results {
        Some(results) => {
            let (loaded, recorded) = select_recorded(request, results)?;
            (loaded, Some(recorded))
        }
        None => (load_single_test(request.test.unwrap_or_default())?, None),
    };
    let subject = ReproSubject::new(loaded)?;
    let (name, file) = (subject.name().to_owned(), subject.loaded.source.file.clone());
    let invalid = |what: String| Failure::input_message(format!("{file}: {what}"));
    let chosen = load_model(request, recorded.as_ref())?;
    let prediction = predict_subject(&subject, &chosen, request)?;
    let prediction = prediction.ok_or_else(|| {
        Failure::environment_message(format!(
            "{file}: the model did not answer in time; pass a longer `--timeout`"
        ))
    })?;
    let stage = counting_stage(&subject.loaded.source.variant).map_err(invalid)?;
    let test = to_vulkan(&subject.loaded.test).map_err(|error| invalid(error.to_string()))?;
    let kind = test.question.as_ref().map(|question| question.kind);
    let answer = answer_question(&test, &prediction).and_then(|answer| answer.holds);
    let is_claim = match kind {
        Some(litmus::QuestionKind::Exists | litmus::QuestionKind::Final) => answer == Some(false),
        Some(litmus::QuestionKind::NotExists | litmus::QuestionKind::Forall) => answer == Some(true),
        None => false,
    };
    if !is_claim {
        return Err(invalid(format!(
            "`{}` does not forbid an outcome by the question; expected a test that a device can fail",
            chosen.model.name()
        )));
    }
    let glsl = to_counting_glsl(&test, INSTANCES, stage).map_err(|error| invalid(error.to_string()))?;
    let mut script = format!(
        "#!amber\n# {name}: `{}` forbids the outcome that the shader counts.\n\
         # Written by `vk-litmus repro {name} --format amber`.\n\n\
         DEVICE_FEATURE VulkanMemoryModelFeatures.vulkanMemoryModel\n\
         DEVICE_FEATURE VulkanMemoryModelFeatures.vulkanMemoryModelDeviceScope\n",
        chosen.model.name()
    );
    let [run, pipeline] = match stage {
        CountingStage::Compute => write_compute(&mut script, &glsl),
        CountingStage::Fragment => write_fragment(&mut script, &glsl),
    };
    let mut bindings = String::new();
    for (binding, buffer) in glsl.buffers.iter().enumerate().filter(|(_, buffer)| buffer.words > 0) {
        let GlslBuffer { image_format, words, initial } = buffer;
        let (declared, usage) = match image_format {
            Some(format) => (
                format!("IMAGE buffer{binding} FORMAT {format} DIM_2D WIDTH {words} HEIGHT 1"),
                "storage_image",
            ),
            None => (format!("BUFFER buffer{binding} DATA_TYPE uint32 SIZE {words}"), "storage"),
        };
        let _ = writeln!(script, "{declared} FILL {initial}");
        let _ =
            writeln!(bindings, "  BIND BUFFER buffer{binding} AS {usage} DESCRIPTOR_SET 0 BINDING {binding}");
    }
    let verdict = glsl.buffers.len() - 1;
    let offset = |word: CountWord| 4 * word as u32;
    let _ = writeln!(
        script,
        "{pipeline}{bindings}END\n\nRUN pipeline {run}\n\n\
         EXPECT buffer{verdict} IDX {} EQ 0\nEXPECT buffer{verdict} IDX {} EQ {INSTANCES}",
        offset(CountWord::Violations),
        offset(CountWord::Finished)
    );
    Ok(script)
}

/// Returns the stage of a variant that a script can express.
fn counting_stage(variant: &str) -> Result<CountingStage, String> {
    let parsed: RunVariant = variant.parse().map_err(|error| format!("{error}"))?;
    let is_only_stage = parsed
        == RunVariant {
            shader: Variant { stage: parsed.shader.stage, ..Variant::default() },
            ..RunVariant::default()
        };
    match parsed.shader.stage {
        CarrierStage::Compute if is_only_stage => Ok(CountingStage::Compute),
        CarrierStage::Fragment if is_only_stage => Ok(CountingStage::Fragment),
        _ => Err(format!("`@{variant}` has no script; expected the test in compute shaders, or `@fragment`")),
    }
}

/// Writes a compute shader. Returns the arguments of its dispatch and the start of its pipeline.
fn write_compute(script: &mut String, glsl: &GlslShader) -> [String; 2] {
    let _ = writeln!(script, "\nSHADER compute litmus GLSL TARGET_ENV spv1.3\n{}END\n", glsl.source);
    let [x, y, z] = glsl.grid;
    [format!("{x} {y} {z}"), "\nPIPELINE compute pipeline\n  ATTACH litmus\n".to_owned()]
}

/// Writes a fragment shader. Returns the arguments of its draw and the start of its pipeline.
fn write_fragment(script: &mut String, glsl: &GlslShader) -> [String; 2] {
    let [width, height, _] = glsl.grid;
    let _ = writeln!(
        script,
        "DEVICE_FEATURE fragmentStoresAndAtomics\n\nSHADER vertex rectangle PASSTHROUGH\n\n\
         SHADER fragment litmus GLSL TARGET_ENV spv1.3\n{}END\n\nBUFFER pixels FORMAT B8G8R8A8_UNORM",
        glsl.source
    );
    let pipeline = format!(
        "\nPIPELINE graphics pipeline\n  ATTACH rectangle\n  ATTACH litmus\n  FRAMEBUFFER_SIZE {width} {height}\n  \
         BIND BUFFER pixels AS color LOCATION 0\n"
    );
    [format!("DRAW_RECT POS 0 0 SIZE {width} {height}"), pipeline]
}
