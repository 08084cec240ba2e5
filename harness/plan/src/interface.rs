//! The interface of user kernels: entry point, bindings, constants and grid shape.

use crate::image::SamplerState;

/// The interface of a kernel that keeps its author's numbers and names.
///
/// A kernel without one has the entry point `main`, its storage buffers in descriptor set 0 from binding 0
/// on, and dispatches of one row of workgroups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The entry point.
    pub entry: String,
    /// The binding of each buffer, in the order of the dispatch's buffers. Elements of one binding are
    /// consecutive, from 0.
    pub bindings: Vec<BufferBinding>,
    /// Descriptor set and binding of each image of the kernel.
    pub images: Vec<(u32, u32)>,
    /// Descriptor set and binding of each sampler, with its state.
    pub samplers: Vec<((u32, u32), SamplerState)>,
    /// Specialization constants: ids, and values as little-endian bytes.
    pub constants: Vec<(u32, Vec<u8>)>,
    /// Workgroups of a dispatch in y and z.
    pub layers: [u32; 2],
}

/// The binding of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferBinding {
    /// The descriptor set.
    pub set: u32,
    /// The binding in it.
    pub binding: u32,
    /// The element of an array of buffers; else 0.
    pub element: u32,
    /// True for a uniform buffer, false for a storage buffer.
    pub uniform: bool,
}

/// The minimum of `maxBoundDescriptorSets`.
const SETS: u32 = 4;
/// The minimum of `maxUniformBufferRange`, in bytes.
pub(crate) const UNIFORM_BYTES: u64 = 16_384;
/// The minimum of `maxPerStageDescriptorUniformBuffers`.
const UNIFORM_BUFFERS: usize = 12;
/// The minimum of `maxComputeWorkGroupCount` in y and z.
const LAYERS: u32 = 65_535;

impl Interface {
    /// Returns the number of descriptor sets in the layout, up to the highest used one.
    pub fn set_count(&self) -> u32 {
        let samplers = self.samplers.iter().map(|(at, _)| at);
        let images = self.images.iter().chain(samplers).map(|(set, _)| *set);
        self.bindings.iter().map(|bound| bound.set).chain(images).map(|set| set + 1).max().unwrap_or(0)
    }

    /// Returns the index of the buffer at a binding; images follow the buffers. `None` if nothing is bound.
    pub fn binding_position(&self, set: u32, binding: u32) -> Option<usize> {
        let buffer = self.bindings.iter().position(|bound| (bound.set, bound.binding) == (set, binding));
        let image = || self.images.iter().position(|image| *image == (set, binding));
        buffer.or_else(|| image().map(|image| self.bindings.len() + image))
    }

    /// Returns the number of elements of a binding.
    pub fn element_count(&self, set: u32, binding: u32) -> u32 {
        self.bindings.iter().filter(|bound| (bound.set, bound.binding) == (set, binding)).count() as u32
    }

    /// Checks that the interface is internally consistent.
    ///
    /// # Errors
    ///
    /// The first contradiction.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.entry.is_empty() || self.entry.contains('\0') {
            return Err("an entry point without a name".to_owned());
        }
        if self.layers.contains(&0) {
            return Err("a dispatch without workgroups".to_owned());
        }
        for (number, bound) in self.bindings.iter().enumerate() {
            let BufferBinding { set, binding, element, uniform } = *bound;
            let expected = match number.checked_sub(1).and_then(|before| self.bindings.get(before)) {
                Some(before) if (before.set, before.binding) == (set, binding) => {
                    if before.uniform != uniform {
                        return Err(format!("binding {set}.{binding} of two kinds"));
                    }
                    before.element + 1
                }
                _ => 0,
            };
            let first = self.binding_position(set, binding).unwrap_or(number);
            if element != expected || number - first != element as usize {
                return Err(format!("element {element} of binding {set}.{binding} out of order"));
            }
        }
        for (number, (set, binding)) in self.images.iter().enumerate() {
            if self.binding_position(*set, *binding) != Some(self.bindings.len() + number) {
                return Err(format!("binding {set}.{binding} of two kinds"));
            }
        }
        for (number, (at, _)) in self.samplers.iter().enumerate() {
            let is_known = |(known, _): &((u32, u32), SamplerState)| known == at;
            if self.binding_position(at.0, at.1).is_some() || self.samplers[..number].iter().any(is_known) {
                return Err(format!("binding {}.{} of two kinds", at.0, at.1));
            }
        }
        match self.constants.iter().find(|(_, bytes)| !matches!(bytes.len(), 1 | 2 | 4 | 8)) {
            Some((id, bytes)) => Err(format!("specialization constant {id} of {} bytes", bytes.len())),
            None => Ok(()),
        }
    }

    /// Returns the first requirement that not every device meets.
    pub(crate) fn missing_requirement(&self) -> Option<String> {
        let uniform = self.bindings.iter().filter(|bound| bound.uniform).count();
        if self.set_count() > SETS {
            return Some(format!("descriptor set {} (every device has {SETS})", self.set_count() - 1));
        }
        if uniform > UNIFORM_BUFFERS {
            return Some(format!(
                "{uniform} uniform buffers of a kernel (every device has {UNIFORM_BUFFERS})"
            ));
        }
        let most = self.layers.iter().max().copied().unwrap_or(1);
        (most > LAYERS).then(|| format!("{most} workgroups in y or z (every device has {LAYERS})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::AddressMode;

    fn bound(set: u32, binding: u32, element: u32) -> BufferBinding {
        BufferBinding { set, binding, element, uniform: false }
    }

    fn interface(bindings: &[BufferBinding]) -> Interface {
        Interface {
            entry: "main".to_owned(),
            bindings: bindings.to_vec(),
            layers: [1, 1],
            ..Interface::default()
        }
    }

    #[test]
    fn elements_of_a_binding_follow_each_other() {
        let good = interface(&[bound(0, 3, 0), bound(2, 0, 0), bound(2, 0, 1)]);
        assert_eq!(good.validate(), Ok(()));
        assert_eq!(
            (good.set_count(), good.binding_position(2, 0), good.element_count(2, 0)),
            (3, Some(1), 2)
        );
        let wrong: [&[BufferBinding]; 4] = [
            &[bound(0, 0, 1)],
            &[bound(0, 0, 0), bound(0, 0, 0)],
            &[bound(0, 0, 0), bound(0, 1, 0), bound(0, 0, 1)],
            &[bound(0, 0, 0), bound(0, 1, 0), bound(0, 0, 0)],
        ];
        for bindings in wrong {
            assert!(interface(bindings).validate().is_err(), "{bindings:?}");
        }
        let with_images = Interface { images: vec![(3, 1), (0, 0)], ..good.clone() };
        assert_eq!(with_images.validate(), Ok(()));
        assert_eq!((with_images.set_count(), with_images.binding_position(0, 0)), (4, Some(4)));
        for images in [vec![(2, 0)], vec![(3, 1), (3, 1)]] {
            assert!(Interface { images, ..good.clone() }.validate().is_err());
        }
        let state = SamplerState { is_linear: true, address_mode: AddressMode::Clamp };
        for (sampler, is_valid) in [((4, 0), true), ((3, 1), false)] {
            let samplers = vec![(sampler, state)];
            assert_eq!(Interface { samplers, ..with_images.clone() }.validate().is_ok(), is_valid);
        }
        assert!(Interface { layers: [1, 0], ..good.clone() }.validate().is_err());
        assert!(Interface { entry: String::new(), ..good.clone() }.validate().is_err());
        assert!(Interface { constants: vec![(1, vec![0; 3])], ..good }.validate().is_err());
    }

    #[test]
    fn missing_optional_features_are_named() {
        let sets = interface(&[bound(5, 0, 0)]);
        assert!(sets.missing_requirement().is_some_and(|lack| lack.contains("descriptor set 5")));
        let layers = Interface { layers: [1, 70_000], ..interface(&[]) };
        assert!(layers.missing_requirement().is_some_and(|lack| lack.contains("70000 workgroups")));
        assert_eq!(interface(&[bound(0, 0, 0)]).missing_requirement(), None);
    }
}
