//! Apple: Mesa's Honeykrisp on the asahi shim; its disassembly, which it prints to standard output.

use crate::driver::{CompileMethod, TextSource, Vendor, coded_family};
use crate::line::{CodeOperation, CodePath, LineKind};
use crate::order::{Order, OrderRequirement, number_after, required_between};
use crate::text::{DisassemblerDialect, LineRule, access_rule, classify_line, note_rule, order_rule};

/// Mesa's Honeykrisp.
pub const HONEYKRISP: Vendor = Vendor {
    selector_prefix: "honeykrisp",
    display_name: "Honeykrisp",
    driver_id: 26,
    driver_file_prefix: "asahi_icd",
    library: "libvulkan_asahi.so",
    compile_methods: &[CompileMethod::Shim {
        library: "libasahi_noop_drm_shim.so",
        variable: None,
        has_chip_names: false,
    }],
    install: "Debian: mesa-vulkan-drivers and mesa-drm-shim, from Mesa 26.1 on amd64",
    environment: &[("MESA_SHADER_CACHE_DISABLE", "true")],
    debug_flag: Some(("AGX_MESA_DEBUG", "shaders")),
    text_source: TextSource::StandardOutput {
        shader_prefix: "shader: MESA_SHADER_",
        code_prefix: "block0 {",
    },
    chip_prefix: None,
    families: &[coded_family("m1", &["g13g"], "g13", "")],
    dialect: &DIALECT,
    descriptors: None,
};

pub const DIALECT: DisassemblerDialect = DisassemblerDialect {
    name: "agx",
    preprocess: extract_main_part,
    rules: RULES,
    has_constant_addresses: false,
    resource_numbers,
    order_requirements: ORDER_REQUIREMENTS,
    register_prefixes: &['r', 'u'],
    block_prefix: "L",
    ..DisassemblerDialect::new("agx", read_line)
};

const RULES: &[LineRule] = &[
    order_rule("memory_barrier", "fence"),
    order_rule("device_barrier", "fence of the device"),
    order_rule("unknown_barrier", "part of a fence, by a bit without a documented name"),
    order_rule("threadgroup_barrier", "control barrier"),
    order_rule("barrier", "control barrier"),
    order_rule("image_barrier", "fence of images"),
    order_rule("wait", "wait for a slot: its loads and stores"),
    access_rule("local_load", CodeOperation::Load, CodePath::Workgroup),
    access_rule("local_store", CodeOperation::Store, CodePath::Workgroup),
    access_rule("local_atomic", CodeOperation::Atomic, CodePath::Workgroup),
    access_rule("image_load", CodeOperation::Load, CodePath::Image),
    access_rule("image_write", CodeOperation::Store, CodePath::Image),
    access_rule("texture_load", CodeOperation::Load, CodePath::Image),
    access_rule("atomic", CodeOperation::Atomic, CodePath::Address),
    access_rule("load", CodeOperation::Load, CodePath::Address),
    access_rule("store", CodeOperation::Store, CodePath::Address),
    LineRule { pattern: "jmp", kind: Some(LineKind::Jump), description: "" },
    note_rule("coherent", "coherent in the device"),
];

/// The compiler's output: a wait for the first access, then its fences.
const SOURCE: &str = "Mesa, src/asahi/compiler, agx_compile.c and agx_insert_waits.c";
const ANY_OPERATION: &[CodeOperation] = &[CodeOperation::Load, CodeOperation::Store, CodeOperation::Atomic];
const FENCE_STEPS: &[crate::order::RequirementPart] = &[
    required_between(&["wait "], "wait for the first access"),
    required_between(&["memory_barrier"], "fence"),
];
const ORDER_REQUIREMENTS: &[OrderRequirement] = &[
    OrderRequirement {
        order: Order::Acquire,
        first_operations: ANY_OPERATION,
        targets: &[],
        steps: FENCE_STEPS,
        source: SOURCE,
    },
    OrderRequirement {
        order: Order::Release,
        first_operations: ANY_OPERATION,
        targets: &[],
        steps: FENCE_STEPS,
        source: SOURCE,
    },
];

fn resource_numbers(lines: &[&str]) -> Vec<Option<u64>> {
    lines.iter().map(|line| number_after(line, BINDING)).collect()
}

/// The note after an access to a descriptor that the preamble has read.
const BINDING: &str = " // descriptor ";

/// Returns the main code up to its end, or up to the start of a continuation.
///
/// The preamble after it loads numbered descriptors into uniform registers; accesses are annotated with these
/// numbers.
fn extract_main_part(text: &str) -> String {
    let mut code: Vec<&str> = Vec::new();
    let mut continuation_start = None;
    for line in text.lines() {
        let Some((text, _)) = read_line(line) else { continue };
        if !code.is_empty() && line.trim_start().starts_with("0: ") {
            continuation_start = continuation_start.or(Some(code.len()));
        }
        code.push(text);
    }
    let end = code.iter().position(|line| *line == "stop").map_or(code.len(), |at| at + 1);
    let end = continuation_start.map_or(end, |next| end.min(next));
    let mut descriptors: Vec<(String, u64)> = Vec::new();
    let mut number = None;
    for line in code.get(end..).unwrap_or_default() {
        let operands: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        match operands.as_slice() {
            ["load", _, _, index, ..] => number = index.parse().ok(),
            ["mov", uniform, ..] if uniform.starts_with("du") => {
                descriptors.extend(number.map(|number| ((*uniform).to_owned(), number)));
            }
            _ => {}
        }
    }
    let mut main_code = String::new();
    for (place, line) in (0..).zip(code.get(..end).unwrap_or_default()) {
        let words = || line.split([' ', ',']);
        let descriptor = descriptors.iter().find(|(uniform, _)| words().any(|word| word == uniform));
        let note = descriptor.map_or_else(String::new, |(_, number)| format!("{BINDING}{number}"));
        // In the original format, so that lines can be read again.
        let place: u32 = place;
        main_code.push_str(&format!("{place:x}: 0000 {line}{note}\n"));
    }
    main_code
}

/// Parses a line of the disassembly: `  18: 4511280e00f01200       store    r2, du4, …`.
///
/// Other output about a shader, such as intermediate forms, has no such offsets.
fn read_line(line: &str) -> Option<(&str, LineKind)> {
    let (offset, rest) = line.trim().split_once(": ")?;
    let is_offset = !offset.is_empty() && offset.chars().all(|c| c.is_ascii_hexdigit());
    let (bytes, text) = rest.trim_start().split_once(char::is_whitespace)?;
    if !is_offset || bytes.len() < 4 || !bytes.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let text = text.trim();
    Some((text, classify_line(RULES, text)))
}
