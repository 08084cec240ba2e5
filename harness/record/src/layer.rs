//! The embedded layer, and the environment in which a program loads it.

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// The shared library; empty if this program was built without a C compiler.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/librecord.so"));

/// The layer's name. It contains the version, so that two installed versions do not mix.
const NAME: &str = concat!("VK_LAYER_LITMUS_record_", env!("CARGO_PKG_VERSION"));

/// Limits of the contents of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLimits {
    /// Cases with different contents per kind of dispatch; 0 records no contents.
    pub cases_per_kind: u32,
    /// Bytes of recorded contents in all.
    pub bytes: u64,
}

/// Returns true if this build contains the layer.
pub fn is_available() -> bool {
    !LIBRARY.is_empty()
}

/// Writes the layer and its manifest to an existing folder.
///
/// # Errors
/// If a file cannot be written.
pub fn install(folder: &Path) -> io::Result<()> {
    std::fs::write(folder.join("librecord.so"), LIBRARY)?;
    let manifest = serde_json::json!({
        "file_format_version": "1.1.2",
        "layer": {
            "name": NAME,
            "type": "GLOBAL",
            "library_path": "./librecord.so",
            "api_version": "1.3.0",
            "implementation_version": "1",
            "description": "Records the commands of a program for vk-litmus",
        },
    });
    std::fs::write(folder.join("record.json"), manifest.to_string())
}

/// Returns the variables with which a program loads the layer from `layer` and records to `journals`, an existing folder.
///
/// `current` returns a variable of the present environment. The loader ignores `VK_ADD_LAYER_PATH` if `VK_LAYER_PATH` is set
/// (LoaderLayerInterface.md, "Exception for Elevated Privileges" and the sections before), so a set one is extended.
pub fn environment(
    layer: &Path,
    journals: &Path,
    limits: RecordLimits,
    current: impl Fn(&str) -> Option<OsString>,
) -> Vec<(&'static str, OsString)> {
    // Above other layers, which may change the calls of the program. Old loaders take their order from the path.
    let prepended = |name: &str, mut added: OsString| {
        if let Some(others) = current(name).filter(|value| !value.is_empty()) {
            added.push(":");
            added.push(others);
        }
        added
    };
    let path = match current("VK_LAYER_PATH").is_some_and(|value| !value.is_empty()) {
        true => "VK_LAYER_PATH",
        false => "VK_ADD_LAYER_PATH",
    };
    vec![
        (path, prepended(path, layer.as_os_str().to_owned())),
        ("VK_INSTANCE_LAYERS", prepended("VK_INSTANCE_LAYERS", OsString::from(NAME))),
        ("VK_LITMUS_RECORD", journals.as_os_str().to_owned()),
        ("VK_LITMUS_RECORD_KEEP", OsString::from(limits.cases_per_kind.to_string())),
        ("VK_LITMUS_RECORD_BYTES", OsString::from(limits.bytes.to_string())),
    ]
}
