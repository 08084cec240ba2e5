//! The C program of a bundle: the declarations for one test, inserted into a fixed template.

use std::fmt::Write;

use litmus::{AccessMask, Observable, Prediction, ScalarType, Test, Value};
use plan::{Feature, Subgroups};
use runner::Stress;
use shaders::carrier::Carrier;
use shaders::{Binding, Program, ResultSlot};

use crate::compilers::kernels::numbered_path;

/// The template, with a mark for the declarations.
const TEMPLATE: &str = include_str!("host.c");
const DECLARATIONS_MARK: &str = "@TEST@";
/// The file name of the first kernel.
pub const KERNEL_FILE: &str = "kernel.spv";

/// Why a test has no C program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostProgramError {
    #[error("the C program supports only storage buffers and workgroup memory, and the test has {0}")]
    UnsupportedMemory(&'static str),
    #[error("the C program counts values of one word, and `{0}` is wider or narrower")]
    UnsupportedValue(String),
    #[error("the C program does not enable `{0}`")]
    UnsupportedFeature(Feature),
    /// The allowed outcomes are unknown.
    #[error("the model does not list the outcomes of the test")]
    UnknownOutcomes,
}

/// The Vulkan version whose feature structure contains each feature.
const FEATURE_VERSIONS: [(Feature, u32); 9] = [
    (Feature::ShaderInt16, 10),
    (Feature::ShaderInt64, 10),
    (Feature::StorageBuffer16BitAccess, 11),
    (Feature::VulkanMemoryModel, 12),
    (Feature::VulkanMemoryModelDeviceScope, 12),
    (Feature::VulkanMemoryModelAvailabilityVisibilityChains, 12),
    (Feature::ShaderInt8, 12),
    (Feature::StorageBuffer8BitAccess, 12),
    (Feature::ShaderBufferInt64Atomics, 12),
];

/// Returns the C program of a test.
///
/// # Errors
/// If the program does not support the test.
pub fn write_host_program(
    test: &Test,
    program: &Program,
    prediction: Option<&Prediction>,
    stress: &Stress,
) -> Result<String, HostProgramError> {
    let predicted =
        prediction.filter(|prediction| prediction.complete).ok_or(HostProgramError::UnknownOutcomes)?;
    let requirements: Vec<_> = program.kernels().map(|kernel| &kernel.requirements).collect();
    for (memory, has) in [
        ("images", program.kernels().any(|kernel| !kernel.images.is_empty())),
        ("graphics stages", program.kernels().any(|kernel| kernel.carrier != Carrier::Compute)),
        ("addresses", program.kernels().any(|kernel| kernel.uses_addresses)),
        ("locations in separate memory", !program.separate_storages().is_empty()),
        ("memory that the host accesses", requirements.iter().any(|kernel| kernel.host_visible)),
    ] {
        if has {
            return Err(HostProgramError::UnsupportedMemory(memory));
        }
    }
    let mut text = String::new();
    let mut push_line = |part: String| {
        text += &part;
        text.push('\n');
    };
    let is_judged = !predicted.is_undefined();
    push_line(format!("#define TEST {}", c_string(&test.name)));
    push_line("/* 0: the program races, so that no outcome is forbidden. */".to_owned());
    push_line(format!("#define JUDGED {}", u32::from(is_judged)));
    push_line("/* Instances of a workgroup in a round; locations of an instance, in words; results of an instance. */".to_owned());
    push_line(format!("#define LANES {}u", program.lanes));
    push_line(format!("#define STORAGES {}u", program.storages.max(1)));
    push_line(format!("#define STORAGE_WORDS {}u", program.storage_words.max(1)));
    push_line(format!("#define SLOTS {}u", program.results.len()));
    push_line(format!("#define CLASSES {}u", program.max_workgroups_per_group()));
    // The kernels of each phase have their own; the buffer has room for the largest.
    let spacing = program.phases.iter().map(|phase| phase.rendezvous_spacing()).max().unwrap_or(1);
    push_line(format!("#define RENDEZVOUS_SPACING {spacing}u"));
    push_line(format!("#define LOOP_TURNS {}u", program.max_loop_iterations()));

    let mut features = String::new();
    for feature in program.features() {
        let (_, version) = FEATURE_VERSIONS
            .iter()
            .find(|(known, _)| *known == feature)
            .ok_or(HostProgramError::UnsupportedFeature(feature))?;
        let _ = write!(features, " NEED(IN_{version}, {feature})");
    }
    push_line(format!("#define FEATURES(NEED){features}"));

    push_line("/* Ranges that each dispatch draws from. */".to_owned());
    let groups = if program.max_workgroups_per_group() == 1 { stress.groups_within } else { stress.groups };
    for (name, (low, high)) in [
        ("groups", groups),
        ("rounds", stress.rounds),
        ("spin", stress.spin),
        ("interval", stress.interval),
        ("hold", stress.hold),
        ("spacing", stress.spacing),
    ] {
        push_line(format!("static const uint32_t {name}_range[2] = {{{low}, {high}}};"));
    }

    push_line("/* The kernels in their order: workgroups of a group, and bindings: L locations, R results, M where workgroups".to_owned());
    push_line(" * meet. Kernels of one phase are dispatched with nothing between them. Then the subgroup size that a kernel requires".to_owned());
    push_line(" * (0 for any), and whether all of them are full, or may differ in size. */".to_owned());
    push_line(format!("#define KERNELS {}", program.kernels().count()));
    push_line(format!("#define PHASES {}", program.phases.len()));
    push_line(
        "struct kernel { const char *file; uint32_t classes; const char *bindings; uint32_t phase, subgroup_size; int full, varying; };"
            .to_owned(),
    );
    push_line("static const struct kernel kernels[] = {".to_owned());
    let mut number = 0;
    for (phase, parts) in program.phases.iter().enumerate() {
        for part in &parts.kernels {
            let file = numbered_path(KERNEL_FILE.as_ref(), number);
            number += 1;
            let bindings = part.kernel.bindings.iter().map(|binding| match binding {
                Binding::Results => 'R',
                Binding::Rendezvous => 'M',
                Binding::Locations | Binding::SeparateLocations | Binding::Scratch | Binding::Claims => 'L',
            });
            let (file, bindings) = (file.display(), bindings.collect::<String>());
            let subgroups = runner::subgroup_requirements(&part.kernel);
            push_line(format!(
                "    {{\"{file}\", {}, \"{bindings}\", {phase}, {}u, {}, {}}},",
                part.kernel.roles.classes.len(),
                subgroups.required_size().unwrap_or(0),
                u32::from(matches!(subgroups, Subgroups::Full(_))),
                u32::from(subgroups == Subgroups::Varying)
            ));
        }
    }
    push_line("};".to_owned());
    push_line("/* The memory barrier before each phase. */".to_owned());
    push_line("static const struct { VkAccessFlags available, visible; } between[PHASES] = {".to_owned());
    for phase in &program.phases {
        let (available, visible) =
            (access_flags(phase.dependency.available), access_flags(phase.dependency.visible));
        push_line(format!("    {{{available}, {visible}}},"));
    }
    push_line("};".to_owned());
    let initial = program.initial_values.iter().flat_map(|bits| {
        (0..program.storage_words.max(1)).map(move |word| (bits >> (32 * word.min(3))) as u32)
    });
    push_line(format!(
        "static const uint32_t initial_values[STORAGES * STORAGE_WORDS] = {{{}}};",
        word_list(initial)
    ));
    let done = program.results.iter().enumerate();
    let done: Vec<String> = done
        .filter(|(_, slot)| matches!(slot, ResultSlot::Done(_)))
        .map(|(number, _)| number.to_string())
        .collect();
    push_line("/* The results that record the end of a thread; -1 for none. */".to_owned());
    let done = if done.is_empty() { "-1".to_owned() } else { done.join(", ") };
    push_line(format!("static const int32_t done_slots[] = {{{done}}};"));

    let observables = &predicted.observables;
    if observables.is_empty() {
        return Err(HostProgramError::UnknownOutcomes);
    }
    push_line("/* The values of an outcome: a result, or a word of a location. */".to_owned());
    push_line(format!("#define VALUES {}u", observables.len()));
    push_line("struct value { const char *name; int in_memory; uint32_t number, word, shift, mask; int is_float; };".to_owned());
    push_line("static const struct value values[VALUES] = {".to_owned());
    for observable in observables {
        push_line(format!("    {},", value_initializer(test, program, *observable)?));
    }
    push_line("};".to_owned());
    push_line("/* The model's answer for every outcome. */".to_owned());
    push_line(
        "static const struct { uint32_t values[VALUES]; const char *verdict; } outcomes[] = {".to_owned(),
    );
    for (outcome, verdict) in &predicted.outcomes {
        let word = match (is_judged, verdict.allowed, verdict.weak) {
            (false, ..) => "",
            (true, true, false) => "allowed",
            (true, true, true) => "allowed, weak",
            (true, false, _) => "forbidden",
        };
        push_line(format!(
            "    {{{{{}}}, \"{word}\"}},",
            word_list(outcome.0.iter().map(|value: &Value| value.0 as u32))
        ));
    }
    push_line("};".to_owned());
    Ok(TEMPLATE.replacen(DECLARATIONS_MARK, &text, 1))
}

/// Returns the C initializer for the position of an observable.
fn value_initializer(
    test: &Test,
    program: &Program,
    observable: Observable,
) -> Result<String, HostProgramError> {
    let name = test.observable_name(observable);
    let scalar = test.observable_type(observable);
    let unsupported = || HostProgramError::UnsupportedValue(name.clone());
    // The C program compares 32-bit words.
    if scalar.bits() > 32 || matches!(scalar, ScalarType::I8 | ScalarType::I16) {
        return Err(unsupported());
    }
    let slot = program.results.iter().position(|slot| *slot == ResultSlot::Register(observable));
    let quoted_name = c_string(&name);
    if let Some(slot) = slot {
        return Ok(format!("{{{quoted_name}, 0, {slot}, 0, 0, 0xffffffffu, 0}}"));
    }
    let (_, storage) =
        program.final_values.iter().find(|(known, _)| *known == observable).ok_or_else(unsupported)?;
    // Components of a vector are consecutive.
    let component = match observable {
        Observable::Location(_, component) => u32::from(component),
        Observable::Register(..) => 0,
    };
    let byte = component * scalar.bytes();
    let mask = if scalar.bits() == 32 { u32::MAX } else { (1 << scalar.bits()) - 1 };
    let (word, shift) = (byte / 4, 8 * (byte % 4));
    let is_float = u32::from(scalar == ScalarType::F32);
    Ok(format!("{{{quoted_name}, 1, {storage}, {word}, {shift}, 0x{mask:x}u, {is_float}}}"))
}

/// Returns the Vulkan access mask for that of a test.
fn access_flags(mask: AccessMask) -> String {
    let names: Vec<String> =
        mask.names().map(|name| format!("VK_ACCESS_{}_BIT", name.to_uppercase())).collect();
    if names.is_empty() { "0".to_owned() } else { names.join(" | ") }
}

fn word_list(words: impl Iterator<Item = u32>) -> String {
    let words: Vec<String> = words.map(|word| format!("{word}u")).collect();
    words.join(", ")
}

/// Quotes a text as a C string.
fn c_string(text: &str) -> String {
    let plain =
        |c: char| if c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '?') || c == ' ' { c } else { '_' };
    format!("\"{}\"", text.chars().map(plain).collect::<String>())
}
