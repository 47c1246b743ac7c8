// Command generate makes the Go code of all .proto files below a folder, with the plugins that its go.mod pins and without
// a protoc:
//
//	go -C tools run ./generate ..
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// virtual are the folders whose files are imported by another path than the one below the root: it is that of the package.
var virtual = map[string]string{"interceptor/guardpb": "latchkey/guard/v1"}

// plugins are run for each file, or for those of one folder; one that finds no service in it makes nothing.
var plugins = []struct{ name, importPath, folder, parameter string }{
	{"protoc-gen-go", "google.golang.org/protobuf/cmd/protoc-gen-go", "", ""},
	{"protoc-gen-go-grpc", "google.golang.org/grpc/cmd/protoc-gen-go-grpc", "", ""},
	{"protoc-gen-grpc-gateway", "github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-grpc-gateway", "test/neighbours/neighbourpb", ",generate_unbound_methods=true"},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("generate: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: generate ROOT")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(root string) error {
	files, err := protoFiles(root)
	if err != nil {
		return err
	}
	bin, err := os.MkdirTemp("", "plugins")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	for _, p := range plugins {
		if err := build(filepath.Join(bin, p.name), p.importPath); err != nil {
			return err
		}
	}
	for _, file := range files {
		request, err := compile(root, file)
		if err != nil {
			return err
		}
		for _, p := range plugins {
			if p.folder != "" && p.folder != path.Dir(file) {
				continue
			}
			request.Parameter = new("paths=source_relative" + p.parameter)
			if err := generate(filepath.Join(bin, p.name), request, filepath.Join(root, path.Dir(file))); err != nil {
				return fmt.Errorf("%s of %s: %w", p.name, file, err)
			}
		}
	}
	return nil
}

// protoFiles are the paths of all .proto files below root.
func protoFiles(root string) (files []string, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != ".":
			return fs.SkipDir
		case path.Ext(file) == ".proto":
			files = append(files, file)
		}
		return nil
	})
	return files, err
}

// importPath is how a file is imported by others.
func importPath(file string) string {
	if dir, ok := virtual[path.Dir(file)]; ok {
		return path.Join(dir, path.Base(file))
	}
	return file
}

// open finds a file by how it is imported.
func open(root, name string) (*os.File, error) {
	for disk, dir := range virtual {
		if path.Dir(name) == dir {
			name = path.Join(disk, path.Base(name))
		}
	}
	return os.Open(filepath.Join(root, name))
}

func build(output, importPath string) error {
	cmd := exec.Command("go", "build", "-o", output, importPath)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// compile makes the request to plugins for one file.
func compile(root, file string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: func(name string) (io.ReadCloser, error) { return open(root, name) },
		}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	linked, err := compiler.Compile(context.Background(), importPath(file))
	if err != nil {
		return nil, err
	}
	return &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{importPath(file)},
		ProtoFile:      closure(linked[0], nil),
	}, nil
}

// closure appends f to files behind everything that it imports, as plugins want it.
func closure(f protoreflect.FileDescriptor, files []*descriptorpb.FileDescriptorProto) []*descriptorpb.FileDescriptorProto {
	for i := range f.Imports().Len() {
		files = closure(f.Imports().Get(i), files)
	}
	if slices.ContainsFunc(files, func(known *descriptorpb.FileDescriptorProto) bool { return known.GetName() == f.Path() }) {
		return files
	}
	return append(files, protodesc.ToFileDescriptorProto(f))
}

// generate runs a plugin and writes what it makes into dir.
func generate(plugin string, request *pluginpb.CodeGeneratorRequest, dir string) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.Command(plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, f := range response.GetFile() {
		if err := os.WriteFile(filepath.Join(dir, path.Base(f.GetName())), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
