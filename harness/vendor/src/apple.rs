//! Apple: Honeykrisp, Mesa's driver, on the shim of asahi; its disassembly, which it prints on standard output.

use crate::text::{Dialect, LineKind, Operation, Path, Rule, access, kind_by, note, order};
use crate::{TextSource, Vendor, Way, coded};

/// Mesa's Honeykrisp.
pub const HONEYKRISP: Vendor = Vendor {
    word: "honeykrisp",
    driver: "Honeykrisp",
    driver_id: 26,
    driver_file: "asahi_icd",
    library: "libvulkan_asahi.so",
    ways: &[Way::Shim { library: "libasahi_noop_drm_shim.so", variable: None, names_chips: false }],
    install: "Debian: mesa-vulkan-drivers and mesa-drm-shim, from Mesa 26.1 on amd64",
    settings: &[("MESA_SHADER_CACHE_DISABLE", "true")],
    debug_word: Some(("AGX_MESA_DEBUG", "shaders")),
    text_from: TextSource::StandardOutput { code: "block0 {" },
    before_chip: None,
    families: &[coded("m1", &["g13g"], "g13", "")],
    dialect: &DIALECT,
    descriptors: None,
};

/// How its disassembler writes.
pub const DIALECT: Dialect = Dialect {
    name: "agx",
    prepare: main_part,
    rules: RULES,
    constant_addresses: false,
    registers: &['r', 'u'],
    block: "L",
    ..Dialect::new("agx", read)
};

const RULES: &[Rule] = &[
    order("memory_barrier", "fence"),
    order("device_barrier", "fence of the device"),
    order("unknown_barrier", "part of a fence, by a bit that nobody has named"),
    order("threadgroup_barrier", "control barrier"),
    order("image_barrier", "fence of images"),
    order("wait", "wait for a slot: its loads and stores"),
    access("local_load", Operation::Load, Path::Workgroup),
    access("local_store", Operation::Store, Path::Workgroup),
    access("local_atomic", Operation::Atomic, Path::Workgroup),
    access("image_load", Operation::Load, Path::Image),
    access("image_write", Operation::Store, Path::Image),
    access("texture_load", Operation::Load, Path::Image),
    access("atomic", Operation::Atomic, Path::Address),
    access("load", Operation::Load, Path::Address),
    access("store", Operation::Store, Path::Address),
    Rule { has: "jmp", kind: Some(LineKind::Jump), words: "" },
    note("coherent", "coherent in the device"),
];

/// The code without the preamble that stands behind it, which reads descriptors for all of a dispatch.
fn main_part(text: &str) -> String {
    let mut part = String::new();
    for line in text.lines() {
        part.push_str(line);
        part.push('\n');
        if read(line).is_some_and(|(text, _)| text == "stop") {
            break;
        }
    }
    part
}

/// A line of the disassembly: `  18: 4511280e00f01200       store    r2, du4, …`. Whatever else the driver prints of a
/// shader, its intermediate forms, has no such places.
fn read(line: &str) -> Option<(&str, LineKind)> {
    let (place, rest) = line.trim().split_once(": ")?;
    let is_place = !place.is_empty() && place.chars().all(|c| c.is_ascii_hexdigit());
    let (bytes, text) = rest.trim_start().split_once(char::is_whitespace)?;
    if !is_place || bytes.len() < 4 || !bytes.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let text = text.trim();
    Some((text, kind_by(RULES, text)))
}
