//! Inputs of a dispatch that are none of the shader that they are given to: a slip of the hand asks another question than was meant.

use std::collections::BTreeSet;

use rspirv::spirv::StorageClass;

use crate::lift::Options;
use crate::module::Module;

impl Module {
    /// What is given and belongs to nothing that the module declares, each in words: bindings, specialization constants, and push
    /// constants where it has none. Compilers leave out what a shader does not use, so that this is no error.
    pub fn foreign(&self, options: &Options) -> Vec<String> {
        let decorations = || self.decorations.values();
        let places: BTreeSet<(u32, u32)> = decorations()
            .filter_map(|own| own.binding.map(|binding| (own.set.unwrap_or(0), binding)))
            .collect();
        let constants: BTreeSet<u32> = decorations().filter_map(|own| own.specialization).collect();
        let of = |what: &str, place: &(u32, u32)| {
            (!places.contains(place))
                .then(|| format!("{what} for {}.{}, which it does not have", place.0, place.1))
        };
        let mut foreign: Vec<String> = Vec::new();
        foreign.extend(options.buffers.keys().filter_map(|place| of("a buffer", place)));
        foreign.extend(options.images.keys().filter_map(|place| of("an image", place)));
        foreign.extend(options.samplers.keys().filter_map(|place| of("a sampler", place)));
        let mut unknown: Vec<u32> =
            options.specialization.keys().filter(|id| !constants.contains(id)).copied().collect();
        unknown.sort_unstable();
        foreign.extend(
            unknown.into_iter().map(|id| format!("specialization constant {id}, which it does not have")),
        );
        let has_push = self.variables.values().any(|variable| variable.class == StorageClass::PushConstant);
        if !options.push.is_empty() && !has_push {
            foreign.push("push constants, of which it has none".to_owned());
        }
        foreign
    }
}
