package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

// rootsModule has the certificate authorities that the image brings along.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// archiveSBOM is the SPDX document of an archive: its programs, and the modules that each of them contains.
func (r *release) archiveSBOM(of string, p platform, programs []program) *spdx.Document {
	file := r.archiveFile(of, p)
	top := r.ours(file, "ARCHIVE")
	top.PackageFileName = file

	return r.document(top, programs, nil)
}

// imageSBOM is the SPDX document of the image of a platform.
func (r *release) imageSBOM(p platform, programs []program, image platformImage) (*spdx.Document, error) {
	roots, err := ownModule(rootsModule)
	if err != nil {
		return nil, err
	}

	digest := image.descriptor.Digest.String()
	top := r.ours(fmt.Sprintf("%s_%s_image_%s_%s", name, r.version, p.os, p.arch), "CONTAINER")
	top.PackageExternalReferences = []*spdx.PackageExternalReference{
		purl("pkg:oci/" + name + "@" + strings.Replace(digest, ":", "%3A", 1) + "?repository_url=" + r.image() + "&arch=" + p.arch),
	}

	return r.document(top, programs, []*debug.Module{roots}), nil
}

// document makes a document of a package of ours, what it contains, and what that contains.
func (r *release) document(top *spdx.Package, programs []program, contained []*debug.Module) *spdx.Document {
	d := &document{modules: map[common.ElementID]*spdx.Package{}, Document: &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: top.PackageName,
		CreationInfo: &spdx.CreationInfo{
			Created:  r.time.Format(time.RFC3339),
			Creators: []spdx.Creator{{CreatorType: "Tool", Creator: name + "-release-" + r.version}},
		},
		Packages: []*spdx.Package{top},
	}}
	d.relate("DOCUMENT", "DESCRIBES", top.PackageSPDXIdentifier)

	content := sha256.New()

	for _, program := range programs {
		sum := fmt.Sprintf("%x", sha256.Sum256(program.content))
		fmt.Fprintln(content, sum)

		pkg := r.ours(program.name, "APPLICATION")
		pkg.PackageFileName = program.name
		pkg.PackageChecksums = []spdx.Checksum{{Algorithm: spdx.SHA256, Value: sum}}
		d.Packages = append(d.Packages, pkg)
		d.relate(top.PackageSPDXIdentifier, "CONTAINS", pkg.PackageSPDXIdentifier)
		d.add(pkg, "DEPENDS_ON", linked(program.info))
	}

	d.add(top, "CONTAINS", contained)
	d.Packages = append(d.Packages, slices.SortedFunc(maps.Values(d.modules), func(a, b *spdx.Package) int {
		return cmp.Compare(a.PackageSPDXIdentifier, b.PackageSPDXIdentifier)
	})...)
	// One document for each content, as the format wants it, and the same one for the same content.
	d.DocumentNamespace = fmt.Sprintf("https://omni.texashpc.com/spdx/%s-%x", top.PackageName, content.Sum(nil))

	return d.Document
}

// document is a document in the making.
type document struct {
	*spdx.Document

	// modules are the libraries so far, each of them once.
	modules map[common.ElementID]*spdx.Package
}

// add says that a package has these modules.
func (d *document) add(to *spdx.Package, how string, modules []*debug.Module) {
	for _, m := range modules {
		pkg := library(m)
		d.modules[pkg.PackageSPDXIdentifier] = pkg
		d.relate(to.PackageSPDXIdentifier, how, pkg.PackageSPDXIdentifier)
	}
}

func (d *document) relate(from common.ElementID, how string, to common.ElementID) {
	d.Relationships = append(d.Relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from)), Relationship: how, RefB: common.MakeDocElementID("", string(to)),
	})
}

// ours is a package that this project makes.
func (r *release) ours(name, purpose string) *spdx.Package {
	return &spdx.Package{
		PackageName: name, PackageSPDXIdentifier: elementID("Package", name), PackageVersion: r.version,
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: "Apache-2.0",
		PackageCopyrightText: "NOASSERTION", PackageSourceInfo: "built from commit " + r.commit, PrimaryPackagePurpose: purpose,
		IsFilesAnalyzedTagPresent: true,
	}
}

// library is a Go module that something contains. Nobody says here what its licence is: the module does.
func library(m *debug.Module) *spdx.Package {
	pkg := &spdx.Package{
		PackageName: m.Path, PackageSPDXIdentifier: elementID("Module", m.Path, m.Version), PackageVersion: m.Version,
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: "NOASSERTION",
		PackageCopyrightText: "NOASSERTION", PrimaryPackagePurpose: "LIBRARY", IsFilesAnalyzedTagPresent: true,
		PackageExternalReferences: []*spdx.PackageExternalReference{purl("pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B"))},
	}

	if m.Sum != "" {
		pkg.PackageSourceInfo = m.Sum + " in go.sum"
	}

	return pkg
}

// linked are the modules whose code is in a program, and Go's own library, under the name that scanners know.
func linked(info *debug.BuildInfo) []*debug.Module {
	modules := []*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}

	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}

		modules = append(modules, m)
	}

	return modules
}

// ownModule is a module that this program itself is built with.
func ownModule(path string) (*debug.Module, error) {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == path {
			return m, nil
		}
	}

	return nil, fmt.Errorf("this program was built without %s", path)
}

func purl(locator string) *spdx.PackageExternalReference {
	return &spdx.PackageExternalReference{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: locator}
}

// elementID is a name in a document, which may have letters, digits, dots and hyphens.
func elementID(parts ...string) common.ElementID {
	clean := func(r rune) rune {
		if r < 128 && (r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}

		return '-'
	}

	return common.ElementID(strings.Map(clean, strings.Join(parts, "-")))
}

func writeSBOM(path string, doc *spdx.Document) error {
	var content bytes.Buffer
	if err := spdxjson.Write(doc, &content, spdxjson.Indent("  "), spdxjson.EscapeHTML(false)); err != nil {
		return err
	}

	return os.WriteFile(path, content.Bytes(), 0o644)
}
