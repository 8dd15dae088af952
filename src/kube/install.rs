//! The shell scripts that a pod's containers run. What they use is in the image: a POSIX shell, `tar`, and Node.js with its
//! package managers. Nothing of a tenant's is ever part of a script: it comes as an argument or a variable.

/// Fetches the package to a file and checks its digest before anything looks inside: `node -e FETCH URL SHA256 FILE MAX_BYTES WITHIN_S`.
/// What may pass (a daemon that restarts, a node behind which many pods have one address) is tried again, with pauses from 1 s that
/// double up to 16 s; the last try begins within WITHIN_S and takes half of that at most. A package that is wrong stays wrong.
/// Not by `fetch`: what that makes of a connection that is closed before it is asked anything never ends.
const FETCH: &str = r#"
const [url, wanted, file, most, within] = process.argv.slice(1);
const { createHash } = require("node:crypto");
const { once } = require("node:events");
const { writeFileSync } = require("node:fs");
const { get } = require(url.startsWith("https:") ? "node:https" : "node:http");
class Final extends Error {}
const attempt = async () => {
  const request = get(url);
  request.on("error", () => {});
  const late = setTimeout(() => request.destroy(new Error("the package: no answer in time")), Number(within) * 500);
  try {
    const [answer] = await once(request, "response");
    if (answer.statusCode === 400) throw new Final("the package: HTTP 400");
    if (answer.statusCode !== 200) throw new Error("the package: HTTP " + answer.statusCode);
    const hash = createHash("sha256");
    const parts = [];
    let bytes = 0;
    for await (const part of answer) {
      bytes += part.length;
      if (bytes > Number(most)) throw new Final("the package: over " + most + " bytes");
      hash.update(part);
      parts.push(part);
    }
    const digest = hash.digest("hex");
    if (digest !== wanted) throw new Final("the package: its SHA-256 is " + digest + ", not " + wanted);
    writeFileSync(file, Buffer.concat(parts), { mode: 0o600 });
  } finally {
    clearTimeout(late);
    request.destroy();
  }
};
(async () => {
  const until = Date.now() + Number(within) * 1000;
  for (let pause = 1000; ; pause = Math.min(pause * 2, 16000)) {
    try {
      return await attempt();
    } catch (error) {
      console.error(error.message);
      if (error instanceof Final || Date.now() + pause > until) process.exit(1);
      await new Promise((done) => setTimeout(done, pause));
    }
  }
})();
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

/// The whole install: `sh -c SCRIPT install URL SHA256 FOLDER MAX_BYTES FETCH_WITHIN_S`.
#[must_use]
pub fn script() -> String {
    let fetch = format!("node -e '{FETCH}' \"$1\" \"$2\" \"$package\" \"$4\" \"$5\"\n");
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
