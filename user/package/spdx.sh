#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# spdx.sh TARBALL: prints an SPDX 2.3 document (JSON) of the tarball: what it is, and the Debian packages of this machine that
# it is built with. The time in it is that of Debian's changelog, so the same machine prints the same document. Run from
# the top of the tree.
set -eu
tarball=$1
name=$(basename "$tarball" .tar.gz)
version=${name#xdp-cuckoo-}
created=$(date -u -d "$(sed -n 's/^ -- .*>  //p' user/package/debian/changelog | head -n 1)" +%Y-%m-%dT%H:%M:%SZ)
sum=$(sha256sum "$tarball" | cut -d ' ' -f 1)

# One line for each package: name, version.
needs() {
	sed -n '/^Build-Depends:/,/^[A-Z]/s/^ \([a-z0-9-]*\).*/\1/p' user/package/debian/control | sed '/^debhelper/d' |
		while read -r package; do
			dpkg-query -W -f '${binary:Package}\t${Version}\n' "$package" 2>/dev/null || printf '%s\t\n' "$package"
		done
}

needs | jq -nR --arg version "$version" --arg created "$created" --arg sum "$sum" --arg name "$name" '
	[inputs | split("\t") | { name: (.[0] | sub(":.*"; "")), version: .[1] }] as $needs |
	{
		spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", name: $name,
		documentNamespace: "https://xdp-cuckoo.example.org/spdx/\($name)-\($sum)",
		creationInfo: { created: $created, creators: ["Tool: spdx.sh"] },
		packages: ([{
			name: "xdp-cuckoo", SPDXID: "SPDXRef-xdp-cuckoo", versionInfo: $version, downloadLocation: "NOASSERTION",
			licenseConcluded: "GPL-2.0-only OR BSD-2-Clause", licenseDeclared: "GPL-2.0-only OR BSD-2-Clause",
			copyrightText: "NOASSERTION", filesAnalyzed: false,
			checksums: [{ algorithm: "SHA256", checksumValue: $sum }]
		}] + [$needs[] | {
			name: .name, SPDXID: "SPDXRef-\(.name)", downloadLocation: "NOASSERTION", filesAnalyzed: false,
			licenseConcluded: "NOASSERTION", licenseDeclared: "NOASSERTION", copyrightText: "NOASSERTION"
		} + if .version == "" then {} else { versionInfo: .version } end]),
		relationships: ([{ spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES",
			relatedSpdxElement: "SPDXRef-xdp-cuckoo" }] +
			[$needs[] | { spdxElementId: "SPDXRef-\(.name)", relationshipType: "BUILD_DEPENDENCY_OF",
			relatedSpdxElement: "SPDXRef-xdp-cuckoo" }])
	}'
