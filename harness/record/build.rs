//! Compiles the recording layer, which the library embeds.
//!
//! Without a C compiler, or for a system other than Linux, the embedded file is empty.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=layer");
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let library = out.join("librecord.so");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    let is_built = is_linux
        && cc::Build::new().cargo_metadata(false).opt_level(1).debug(false).try_get_compiler().is_ok_and(
            |compiler| {
                let mut command = compiler.to_command();
                // The loader closes a layer with its instance; the journal's ids stay valid for the next one.
                command.args([
                    "-std=c11",
                    "-fPIC",
                    "-shared",
                    "-fvisibility=hidden",
                    "-pthread",
                    "-Wl,-z,nodelete",
                ]);
                command.arg("-o").arg(&library).args(["layer/record.c", "-lm"]);
                command.status().is_ok_and(|status| status.success())
            },
        );
    if !is_built {
        if is_linux {
            println!("cargo::warning=no working C compiler: the program is built without `record`");
        }
        if let Err(error) = std::fs::write(&library, []) {
            println!("cargo::error={}: {error}", library.display());
        }
    }
}
