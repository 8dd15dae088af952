//! The shell scripts that a pod's containers run. What they use is in the image: a POSIX shell, `tar`, and Node.js with its
//! package managers. Nothing of a tenant's is ever part of a script: it comes as an argument or a variable.

/// Fetches the package to a file and checks its digest before anything looks inside: `node -e FETCH URL SHA256 FILE MAX_BYTES`.
const FETCH: &str = r#"
const [url, wanted, file, most] = process.argv.slice(1);
const { createHash } = require("node:crypto");
const { writeFileSync } = require("node:fs");
(async () => {
  const answer = await fetch(url, { redirect: "error" });
  if (!answer.ok) throw new Error("the package: HTTP " + answer.status);
  const hash = createHash("sha256");
  const parts = [];
  let bytes = 0;
  for await (const part of answer.body) {
    bytes += part.length;
    if (bytes > Number(most)) throw new Error("the package: over " + most + " bytes");
    hash.update(part);
    parts.push(part);
  }
  const digest = hash.digest("hex");
  if (digest !== wanted) throw new Error("the package: its SHA-256 is " + digest + ", not " + wanted);
  writeFileSync(file, Buffer.concat(parts), { mode: 0o600 });
})().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
"#;

/// Looks through the package's names before unpacking: none may be absolute or climb. `tar` itself refuses such names and the
/// links that lead outside; not every `tar` fails when it does.
const UNPACK: &str = r#"
if tar -tzf "$package" | grep -qE '^/|(^|/)\.\.(/|$)'; then
  echo "the package: an entry's name leads outside" >&2
  exit 1
fi
tar -xzf "$package" -C "$app" -o
rm -f "$package"
"#;

/// Installs by the lockfile; npm resolves what `package.json` names when there is none.
const INSTALL: &str = r#"
cd "$app"
if [ -f pnpm-lock.yaml ]; then
  corepack pnpm install --frozen-lockfile --prod
elif [ -f package-lock.json ]; then
  npm ci --omit=dev --no-audit --no-fund
else
  npm install --omit=dev --no-audit --no-fund
fi
"#;

/// The whole install: `sh -c SCRIPT install URL SHA256 FOLDER MAX_BYTES`.
#[must_use]
pub fn script() -> String {
    let fetch = format!("node -e '{FETCH}' \"$1\" \"$2\" \"$package\" \"$4\"\n");
    format!("set -eu\napp=$3\npackage=\"${{TMPDIR:-/tmp}}/package.tgz\"\n{fetch}{UNPACK}{INSTALL}")
}

/// What reads the environment and becomes the command: `sh -c SCRIPT sh COMMAND...`.
#[must_use]
pub fn read_then_run(environment_dir: &str) -> String {
    format!(". {environment_dir}/env && exec \"$@\"")
}

#[cfg(test)]
pub(super) fn fetch_and_unpack() -> String {
    script().replace(INSTALL, "")
}
