# Builds the program from this repository: `nix run 'github:OWNER/vk-litmus?dir=ci/recipes'`.
{
  description = "Litmus tests for GPU memory models, and races in shaders";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      each = build: nixpkgs.lib.genAttrs systems (system: build nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "vk-litmus";
          version = (builtins.fromTOML (builtins.readFile ../../Cargo.toml)).workspace.package.version;
          src = ../..;
          cargoLock.lockFile = ../../Cargo.lock;
          cargoBuildFlags = [ "--package=vk-litmus" ];
          # The tests need drivers and compilers.
          doCheck = false;
          nativeBuildInputs = [ pkgs.makeWrapper ];
          postFixup = ''
            wrapProgram $out/bin/vk-litmus \
              --prefix LD_LIBRARY_PATH : ${pkgs.lib.makeLibraryPath [ pkgs.vulkan-loader ]}
          '';
          meta.mainProgram = "vk-litmus";
        };
      });
    };
}
